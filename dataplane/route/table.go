package route

import (
	"hash/maphash"

	"github.com/headgate/headgate/dataplane/ir"
)

// Bind returns what a rule is bound to: whatever its owner needs to serve the
// rule's requests. It is called once for a rule, when the rule's route comes
// into a listener, and only when nothing of the update was refused.
type Bind func(*ir.Socket, *ir.Listener, *ir.Route, *ir.Rule) any

// Table is the compiled form of a snapshot's sockets. It is immutable: any
// number of goroutines may read it, and it stays valid while updates make
// other tables from it.
type Table struct {
	generation uint64 // of this table; the owner id of what was made for it
	seed       maphash.Seed
	sockets    []*Socket // sorted by name
}

// Socket is a listening socket with its listeners.
type Socket struct {
	ir        *ir.Socket
	seed      maphash.Seed
	listeners []*Listener // as in ir.Listeners
	hosts     hosts[Listener]
}

// Listener is a virtual listener with its routes.
type Listener struct {
	ir    *ir.Listener
	seed  maphash.Seed
	hosts hosts[host]
}

// New compiles a table. See [Table.Update] for its error.
func New(sockets []*ir.Socket, bind Bind) (*Table, error) {
	return (&Table{seed: maphash.MakeSeed()}).Update(sockets, bind)
}

// Socket returns the socket with the given name, or nil.
func (t *Table) Socket(name string) *Socket {
	if t == nil {
		return nil
	}
	for _, s := range t.sockets {
		if s.ir.Name == name {
			return s
		}
	}
	return nil
}

// IR returns the socket's description.
func (s *Socket) IR() *ir.Socket { return s.ir }

// Listener returns the listener with the most specific hostname for a host, or
// nil when none matches. The host is canonical: of a Host field, or the server
// name of a TLS hello.
func (s *Socket) Listener(host []byte) *Listener {
	walk := s.hosts.walk(s.seed, host)
	return walk.next()
}

// IR returns the listener's description.
func (l *Listener) IR() *ir.Listener { return l.ir }
