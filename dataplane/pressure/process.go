package pressure

// Usage is what the process uses, or may use: client connections, and bytes of
// live memory. In a limit, 0 is none.
type Usage struct{ Connections, Memory int64 }

// Cause is why a Process does not accept.
type Cause uint8

// The causes.
const (
	NoCause       Cause = iota // it accepts
	ByConnections              // as many as may be
	ByMemory                   // close to the limit
)

// String returns the cause's name.
func (c Cause) String() string {
	return [...]string{"none", "connections", "memory"}[c]
}

// The parts of a limit at which the gate closes and opens again. Live memory is
// what the last collection left; until the next one there may be as much again,
// less what the runtime's own limit prevents.
const (
	memoryCloses = 0.80
	memoryOpens  = 0.70
	connsOpen    = 0.97
)

// Process is the gate of the whole process, at its listeners. It belongs to one
// goroutine.
type Process struct {
	limit Usage
	cause Cause
}

// NewProcess returns an open gate.
func NewProcess(limit Usage) *Process { return &Process{limit: limit} }

// SetLimit changes the limit from the next Decide on.
func (p *Process) SetLimit(limit Usage) { p.limit = limit }

// Cause returns what the last Decide returned.
func (p *Process) Cause() Cause { return p.cause }

// Decide takes what is used now, and returns why the process should not accept
// connections.
func (p *Process) Decide(used Usage) Cause {
	over := func(n, limit int64, part float64) bool { return limit > 0 && float64(n) >= part*float64(limit) }
	memory, conns := memoryCloses, 1.0
	switch p.cause { // what closed it must fall below where it closed
	case ByMemory:
		memory = memoryOpens
	case ByConnections:
		conns = connsOpen
	}
	switch {
	case over(used.Memory, p.limit.Memory, memory):
		p.cause = ByMemory
	case over(used.Connections, p.limit.Connections, conns):
		p.cause = ByConnections
	default:
		p.cause = NoCause
	}
	return p.cause
}
