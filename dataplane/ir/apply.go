package ir

// ApplyResult is what a data plane did with a snapshot. The zero value says
// that all of it is served.
type ApplyResult struct {
	// Err is set when the snapshot was refused as a whole: the data plane goes on
	// with the one that it had.
	Err error
	// Sockets has an entry, by [Socket.Name], for each socket that could not be
	// opened. The error wraps the system's errno. The rest is served.
	Sockets map[string]error
}

// OK tells whether the whole snapshot is served.
func (r ApplyResult) OK() bool { return r.Err == nil && len(r.Sockets) == 0 }
