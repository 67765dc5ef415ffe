// Package proxyproto reads the header of the PROXY protocol, versions 1 and 2,
// by which a proxy that does not understand what it relays says for whom it has
// connected. It does no I/O and keeps no input: [Parse] is called with what has
// come so far until it has the whole header. Whether there is to be one, and from
// whom, is the data plane's business. DESIGN.md lists what is accepted.
//
// "spec" in comments is HAProxy's proxy-protocol.txt of 2020/03/05.
package proxyproto
