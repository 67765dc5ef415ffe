package compile

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Occupied is the error of a socket whose port somebody else has.
type Occupied struct {
	Err error // the system's
	// At is the address of the other socket.
	At netip.AddrPort
	// Holder says who has it, and Advice how to get it, both as parts of a sentence.
	Holder, Advice string
}

// Error says who has the port.
func (o *Occupied) Error() string {
	return fmt.Sprintf("%v: %v is held by %s; %s", errnoOf(o.Err), o.At, o.Holder, o.Advice)
}

// Unwrap returns the system's error.
func (o *Occupied) Unwrap() error { return o.Err }

// Diverted is the error of a socket that is open, and that connections to these
// addresses don't reach, since a rule of the host takes them elsewhere.
type Diverted struct {
	// To are the addresses that were tried.
	To []netip.AddrPort
	// Refused says that the connections are refused, not answered by somebody else.
	Refused bool
}

// Error says what becomes of the connections.
func (d *Diverted) Error() string {
	names := make([]string, len(d.To))
	for i, a := range d.To {
		names[i] = a.String()
	}
	what := "come to somebody else"
	if d.Refused {
		what = "are refused"
	}
	return fmt.Sprintf("Headgate listens, but connections to %s %s: a rule of the host redirects them", strings.Join(names, " and "), what)
}

// sentence says what is wrong with a socket, and what to do.
func sentence(name string, err error, rivals []rival) string {
	var d *Diverted
	if !errors.As(err, &d) {
		return fmt.Sprintf("%s could not be opened: %s", name, hint(name, err))
	}
	if len(rivals) > 0 {
		return fmt.Sprintf("%v, for %s", d, adviseAll(rivals))
	}
	return fmt.Sprintf("%v, most likely for a hostPort of a pod; iptables-save | grep 'dport %d' (or nft list ruleset) on the node shows it", d, d.To[0].Port())
}

// hint says what the system's answer means for a socket, and what to do.
func hint(name string, err error) string {
	var o *Occupied
	if errors.As(err, &o) {
		return o.Error()
	}
	var port uint16
	if ap, perr := netip.ParseAddrPort(name); perr == nil {
		port = ap.Port()
	}
	errno := errnoOf(err)
	switch {
	case errors.Is(errno, syscall.EADDRINUSE):
		return fmt.Sprintf("%v; stop what listens there (ss -ltnp 'sport = :%d' shows it), or use another port", errno, port)
	case errors.Is(errno, syscall.EACCES), errors.Is(errno, syscall.EPERM):
		return fmt.Sprintf("%v; ports below 1024 need root or CAP_NET_BIND_SERVICE", errno)
	case errors.Is(errno, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("%v; this host does not have the address", errno)
	case errors.Is(errno, syscall.EMFILE), errors.Is(errno, syscall.ENFILE):
		return fmt.Sprintf("%v; raise the limit of open files", errno)
	}
	return errno.Error()
}

// errnoOf returns the system's part of an error, or all of it.
func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
