package tlsterm

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"sync"
	"time"
)

// ticketKeys is how many ticket keys are kept: the one in use and the last two.
const ticketKeys = 3

// bindingPrefix marks our entry among a session state's extras.
const bindingPrefix = "headgate/1\x00"

// tickets seals session states with keys that every socket and loop shares. The
// config carries the keys only: crypto/tls's ticket format is used as it is.
type tickets struct {
	config   tls.Config
	interval time.Duration

	mu      sync.Mutex
	keys    [][32]byte // the newest first
	rotated time.Time  // zero before the first rotate
}

func (t *tickets) init(interval time.Duration) {
	t.interval = interval
	t.renew()
}

// rotate replaces the key when interval has passed since the last time. The
// first call only starts the clock.
func (t *tickets) rotate(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.rotated.IsZero():
		t.rotated = now
	case now.Sub(t.rotated) >= t.interval:
		t.rotated = now
		t.renew()
	}
}

func (t *tickets) renew() {
	keys := make([][32]byte, 1, ticketKeys)
	rand.Read(keys[0][:]) // never fails: it ends the process instead
	for _, k := range t.keys {
		if len(keys) < ticketKeys {
			keys = append(keys, k)
		}
	}
	t.keys = keys
	t.config.SetSessionTicketKeys(keys)
}

// wrap seals a session for the host that it was made with.
func (t *tickets) wrap(cs tls.ConnectionState, ss *tls.SessionState, h *host) ([]byte, error) {
	ss.Extra = append(ss.Extra, binding(h, cs.ServerName))
	return t.config.EncryptTicket(cs, ss)
}

// unwrap opens a ticket, or returns nil, which means a full handshake. The
// server name and the listener must be those of the first handshake: crypto/tls
// compares neither, and resumption asks for no certificate.
func (t *tickets) unwrap(ticket []byte, cs tls.ConnectionState, h *host) *tls.SessionState {
	ss, err := t.config.DecryptTicket(ticket, cs)
	if err != nil || ss == nil {
		return nil
	}
	want := binding(h, cs.ServerName)
	for _, extra := range ss.Extra {
		if bytes.Equal(extra, want) { // RFC 6066, 3: not for another name
			return ss
		}
	}
	return nil
}

// binding names a listener and a server name.
func binding(h *host, serverName string) []byte {
	b := make([]byte, 0, len(bindingPrefix)+len(h.listener)+1+len(serverName))
	b = append(b, bindingPrefix...)
	b = append(b, h.listener...)
	b = append(b, 0)
	return append(b, lower(serverName)...)
}
