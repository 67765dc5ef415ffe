package port

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// The states of a TCP socket that are asked for; the kernel's include/net/tcp_states.h.
const (
	established = 0x01
	synReceived = 0x03
	listening   = 0x0a
)

// entry is one line of /proc/net/tcp or tcp6.
type entry struct {
	local, remote netip.AddrPort
	state         uint8
	uid           uint32
	inode         uint64 // 0 while nobody has accepted it
}

// tables are the files with the sockets of this process's network.
var tables = [...]string{"self/net/tcp", "self/net/tcp6"}

// each calls f for every TCP socket until it returns false. more says whether the
// table goes on: the kernel lists those that listen first.
func (h *Host) each(table string, f func(entry) (more bool)) error {
	file, err := h.proc.Open(table)
	if err != nil {
		return fmt.Errorf("read the sockets of this host: %w", err)
	}
	defer file.Close()
	return scan(file, f)
}

func scan(r io.Reader, f func(entry) (more bool)) error {
	lines := bufio.NewScanner(r)
	lines.Scan() // the heading
	for lines.Scan() {
		e, err := parse(lines.Text())
		if err != nil {
			return err
		}
		if !f(e) {
			return nil
		}
	}
	return lines.Err()
}

// parse reads a line; Documentation/networking/proc_net_tcp.rst.
func parse(line string) (entry, error) {
	fields := strings.Fields(line)
	if len(fields) < 10 {
		return entry{}, fmt.Errorf("read the sockets of this host: %q has too few fields", line)
	}
	var e entry
	var err error
	fail := func(what string) (entry, error) {
		return entry{}, fmt.Errorf("read the sockets of this host: %s %q: %w", what, line, err)
	}
	if e.local, err = parseAddr(fields[1]); err != nil {
		return fail("local address in")
	}
	if e.remote, err = parseAddr(fields[2]); err != nil {
		return fail("remote address in")
	}
	state, err := strconv.ParseUint(fields[3], 16, 8)
	if err != nil {
		return fail("state in")
	}
	uid, err := strconv.ParseUint(fields[7], 10, 32)
	if err != nil {
		return fail("user in")
	}
	if e.inode, err = strconv.ParseUint(fields[9], 10, 64); err != nil {
		return fail("inode in")
	}
	e.state, e.uid = uint8(state), uint32(uid)
	return e, nil
}

// parseAddr reads "0100007F:0050". The address is words of 32 bits, each in the
// order of the machine.
func parseAddr(s string) (netip.AddrPort, error) {
	text, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(text)
	if err != nil || !ok || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", s)
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", s)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr, uint16(n)), nil
}

// clashes tells whether a socket that listens on have keeps another one from
// want: the port is the same, and one address is the other or all of them. A
// socket on all addresses of IPv6 may hold those of IPv4, too: the table does
// not say which.
func clashes(have, want netip.AddrPort) bool {
	if have.Port() != want.Port() {
		return false
	}
	a, b := have.Addr().Unmap(), want.Addr().Unmap()
	switch {
	case a.Is4() == b.Is4():
		return a == b || a.IsUnspecified() || b.IsUnspecified()
	case a.Is6():
		return a.IsUnspecified()
	}
	return false // ours on IPv6 are on IPv6 only
}

// readLine returns the first line of a small file, or "". Any process may call itself
// whatever it likes: what can't be printed is replaced, since the line ends up in
// messages of objects, which have valid UTF-8 only.
func readLine(fsys fs.FS, name string) string {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, line)
}
