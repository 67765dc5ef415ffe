package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
)

// The versions of the protocol that this build speaks. Two processes speak the
// lesser of their newest versions, if neither has given it up. Messages and
// fields that one does not know are ignored: a change that an old process may
// ignore needs no new version.
const (
	newestProtocol = 1
	oldestProtocol = 1
)

// The types of messages. The comments tell who sends them: the new process, the
// old one, or both.
const (
	typeHello   = "hello"   // both, once, first: versions
	typeSockets = "sockets" // old: a batch of sockets, with their descriptors
	typeWant    = "want"    // new: asks for the sockets of addresses anew
	typeServing = "serving" // new: it serves; the old one may stop accepting
	typePaused  = "paused"  // old: it has stopped accepting
	typeBye     = "bye"     // both: why this is the last message
)

// Reasons of a bye.
const (
	byeSuperseded = "superseded"  // old: another process serves already; ask that one
	byeStopping   = "stopping"    // both: told to stop
	byeHandedOver = "handed over" // new: told to stop, and its own successor serves
	byeFull       = "full"        // old: too many ask at once
	byeVersion    = "version"     // both: no version of the protocol in common
	byeFailed     = "failed"      // both: an error, which the sender has logged
)

const (
	maxMessage = 64 << 10 // bytes
	maxBatch   = 64       // descriptors in a message; the kernel allows 253
)

// message is one packet: JSON, so that an older reader can skip what it does not
// know.
type message struct {
	Type string `json:"type"`
	// Of a hello: the newest and the oldest version that the sender speaks, and
	// what it is.
	Newest int    `json:"newest,omitempty"`
	Oldest int    `json:"oldest,omitempty"`
	Build  string `json:"build,omitempty"`
	// Of sockets, in the order of the descriptors, and of want.
	Sockets []name `json:"sockets,omitempty"`
	More    bool   `json:"more,omitempty"` // a further batch follows
	Reason  string `json:"reason,omitempty"`
}

// name is what a listening socket is for and where it listens.
type name struct {
	Role    string         `json:"role"`
	Address netip.AddrPort `json:"address"`
}

func (n name) String() string { return n.Role + " " + n.Address.String() }

func (m *message) encode() ([]byte, error) {
	p, err := json.Marshal(m)
	if err == nil && len(p) > maxMessage {
		err = fmt.Errorf("a message of %d bytes is too long", len(p))
	}
	return p, err
}

func decode(p []byte) (*message, error) {
	m := new(message)
	if err := json.Unmarshal(p, m); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if m.Type == "" {
		return nil, errors.New("a message without a type")
	}
	return m, nil
}

// hello introduces this process.
func hello(build string) *message {
	return &message{Type: typeHello, Newest: newestProtocol, Oldest: oldestProtocol, Build: build}
}

// agree makes sure that the sender of a hello speaks a version of the protocol
// that this build speaks. There is one so far, and so nothing depends on which.
func agree(m *message) error {
	switch {
	case m.Type != typeHello:
		return fmt.Errorf("%q came instead of a hello", m.Type)
	case m.Newest < 1 || m.Oldest < 1 || m.Oldest > m.Newest:
		return fmt.Errorf("a hello with the versions %d to %d", m.Oldest, m.Newest)
	case m.Oldest > newestProtocol || m.Newest < oldestProtocol:
		return fmt.Errorf("%w: %q speaks %d to %d, this process %d to %d", errVersion, m.Build, m.Oldest, m.Newest, oldestProtocol, newestProtocol)
	}
	return nil
}

var errVersion = errors.New("no version of the protocol in common")
