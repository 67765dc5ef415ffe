// Package reactor is the event-driven heart of the data plane: a fixed number
// of loops, each on a locked operating system thread, and one acceptor that
// hands new connections to them. A connection lives on one loop from its first
// byte to its last, so nothing that a loop owns needs a lock.
//
// The package owns sockets, timers and flow control, and knows no protocol. Its
// users implement [Handler] and get a connection's events on the connection's
// loop. It is the only package that imports gnet, of which it uses the poller
// and the socket options (see DESIGN.md for what and why). Linux only.
package reactor
