package http1

// Limits bound what a peer can make a parser look at or keep. A value of zero or
// less stands for the default. One Limits is shared by many parsers, which only
// read it.
type Limits struct {
	RequestLine  int // bytes of a start line without its CRLF; default 8 KiB
	HeaderBytes  int // bytes of all field lines of a head; default 64 KiB
	HeaderCount  int // fields of a head; default 100
	ChunkLine    int // bytes of a chunk's size and extensions; default 4 KiB
	TrailerBytes int // bytes of all field lines of a trailer section; default 8 KiB
	TrailerCount int // fields of a trailer section; default 32
}

// The limits that are not worth a setting.
const (
	// maxMethod is far above the longest registered method, UPDATEREDIRECTREF.
	maxMethod = 32
	// maxEmptyLines is how many empty lines may stand before a request line.
	maxEmptyLines = 4
	// maxConnectionLines and maxConnectionOptions bound the work of removing
	// what the Connection field nominates.
	maxConnectionLines   = 8
	maxConnectionOptions = 64
	// maxInterim is how many 1xx heads may stand before a response.
	maxInterim = 100
	// maxChunkOverhead bounds the bytes of chunk lines that no data pays for:
	// every chunk pays for 16 bytes and for twice its data.
	maxChunkOverhead = 16 << 10
	// keepTrailers is how many bytes of trailer memory a parser keeps for the
	// next message.
	keepTrailers = 4 << 10
)

func limit(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

func (l *Limits) requestLine() int  { return limit(l.RequestLine, 8<<10) }
func (l *Limits) headerBytes() int  { return limit(l.HeaderBytes, 64<<10) }
func (l *Limits) headerCount() int  { return limit(l.HeaderCount, 100) }
func (l *Limits) chunkLine() int    { return limit(l.ChunkLine, 4<<10) }
func (l *Limits) trailerBytes() int { return limit(l.TrailerBytes, 8<<10) }
func (l *Limits) trailerCount() int { return limit(l.TrailerCount, 32) }
