// Package route finds the rule that serves a request. A [Table] is compiled
// from the sockets of a snapshot and never changes: readers need no lock, and
// [Table.Update] makes the next table from it by copying what the change
// touches and sharing the rest. Precedence is that of the Gateway API, over
// all routes of a listener. Paths come in as [message.NormalizePath] makes
// them and hosts as [message.CanonicalHost] does; DESIGN.md says why the
// structures are as they are.
package route
