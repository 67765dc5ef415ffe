package ir

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// maxWeight is the largest weight of a backend or an endpoint.
const maxWeight = 1_000_000

// Validate checks every promise that the types of this package make. The
// control plane calls it before it hands a snapshot over, so that the data plane
// need not check anything again. It returns the first fault, with the path to
// it. See [Validator] for one snapshot after the other.
func (s *Snapshot) Validate() error { return new(Validator).Validate(s) }

func (k *Socket) validate(c *check, old *Socket) error {
	switch {
	case !k.Addr.IsValid():
		return errors.New("no address")
	case k.Name != k.Addr.String():
		return fmt.Errorf("the name must be the address, %q", k.Addr)
	case k.Protocol != ProtocolHTTP && k.Protocol != ProtocolHTTPS:
		return fmt.Errorf("protocol %d is unknown", k.Protocol)
	}
	if err := errors.Join(k.Client.validate(), k.AccessLog.validate()); err != nil {
		return err
	}
	hosts := make(map[string]string, len(k.Listeners))
	last := ""
	for i, l := range k.Listeners {
		if l == nil {
			return fmt.Errorf("listener %d is nil", i)
		}
		if l.Name == "" || l.Name <= last && i > 0 {
			return fmt.Errorf("listener %q: names must be set, unique and sorted", l.Name)
		}
		last = l.Name
		if other, ok := hosts[l.Hostname]; ok {
			return fmt.Errorf("listeners %q and %q have the same hostname %q", other, l.Name, l.Hostname)
		}
		hosts[l.Hostname] = l.Name
		if (l.TLS != nil) != (k.Protocol == ProtocolHTTPS) {
			return fmt.Errorf("listener %q: TLS must be set when, and only when, the socket speaks HTTPS", l.Name)
		}
		if err := l.validate(c, old.listener(l.Name)); err != nil {
			return fmt.Errorf("listener %q: %w", l.Name, err)
		}
	}
	return nil
}

func (l *Listener) validate(c *check, was *Listener) error {
	if !validHost(l.Hostname) {
		return fmt.Errorf("hostname %q is malformed", l.Hostname)
	}
	if l.TLS != nil {
		for i, c := range l.TLS.Certificates {
			if c == nil || len(c.Chain) == 0 || len(c.Key.Reveal()) == 0 {
				return fmt.Errorf("certificate %d is incomplete", i)
			}
		}
	}
	var old trail[Route]
	if was != nil && was.Hostname == l.Hostname { // a route's hosts are within the listener's
		old = follow(was.Routes, routeName)
	}
	last := ""
	for i, r := range l.Routes {
		if r == nil {
			return fmt.Errorf("route %d is nil", i)
		}
		if r.Name == "" || r.Name <= last && i > 0 {
			return fmt.Errorf("route %q: names must be set, unique and sorted", r.Name)
		}
		last = r.Name
		_, kept := old.find(r)
		if !kept {
			if err := r.validate(l.Hostname); err != nil {
				return fmt.Errorf("route %q: %w", r.Name, err)
			}
		}
		if !kept || c.lost {
			if err := r.refer(c); err != nil {
				return fmt.Errorf("route %q: %w", r.Name, err)
			}
		}
	}
	return nil
}

func (r *Route) validate(listener string) error {
	if len(r.Hostnames) == 0 {
		return errors.New("no hostname")
	}
	for i, h := range r.Hostnames {
		if !validHost(h) {
			return fmt.Errorf("hostname %q is malformed", h)
		}
		if !hostWithin(h, listener) {
			return fmt.Errorf("hostname %q is outside of the listener's %q", h, listener)
		}
		for _, o := range r.Hostnames[:i] {
			if o == h {
				return fmt.Errorf("hostname %q is there twice", h)
			}
		}
	}
	last := -1
	for i, x := range r.Rules {
		if x == nil {
			return fmt.Errorf("rule %d is nil", i)
		}
		if x.Index <= last {
			return fmt.Errorf("rule %d: indexes must be unique and sorted", x.Index)
		}
		last = x.Index
		if err := x.validate(); err != nil {
			return fmt.Errorf("rule %d: %w", x.Index, err)
		}
	}
	return nil
}

func (r *Rule) validate() error {
	if len(r.Matches) == 0 {
		return errors.New("no match")
	}
	for i, m := range r.Matches {
		if m == nil {
			return fmt.Errorf("match %d is nil", i)
		}
		if err := m.validate(); err != nil {
			return fmt.Errorf("match %d: %w", i, err)
		}
	}
	prefix := len(r.Matches) == 1 && r.Matches[0].Path.Kind == MatchPrefix
	if err := validateFilters(r.Filters, true, prefix); err != nil {
		return err
	}
	for i, b := range r.Backends {
		if b == nil {
			return fmt.Errorf("backend %d is nil", i)
		}
		if err := b.validate(); err != nil {
			return fmt.Errorf("backend %d: %w", i, err)
		}
	}
	q, b := r.Timeouts.Request, r.Timeouts.Backend
	if q != nil && *q < 0 || b != nil && *b < 0 {
		return errors.New("a timeout is negative")
	}
	if q != nil && b != nil && *q > 0 && *b > *q {
		return errors.New("the backend's timeout is longer than the request's")
	}
	return nil
}

func (b *Backend) validate() error {
	switch {
	case b.Cluster == "" && b.Invalid == "":
		return errors.New("neither a cluster nor a reason why there is none")
	case b.Cluster != "" && b.Invalid != "":
		return errors.New("a cluster and a reason why there is none")
	case b.Weight > maxWeight:
		return fmt.Errorf("weight %d is above %d", b.Weight, maxWeight)
	}
	return validateFilters(b.Filters, false, false)
}

func (m *Match) validate() error {
	switch p := m.Path; p.Kind {
	case MatchExact, MatchPrefix:
		if !strings.HasPrefix(p.Value, "/") {
			return fmt.Errorf("path %q must start with a slash", p.Value)
		}
	case MatchRegex:
		if err := validRegex(p.Value); err != nil {
			return err
		}
	default:
		return fmt.Errorf("path kind %d is unknown", p.Kind)
	}
	if m.Method != "" && !validToken(m.Method) {
		return fmt.Errorf("method %q is malformed", m.Method)
	}
	for _, v := range m.Headers {
		if !validToken(v.Name) {
			return fmt.Errorf("header name %q is malformed", v.Name)
		}
		if err := v.validate(); err != nil {
			return fmt.Errorf("header %q: %w", v.Name, err)
		}
	}
	for _, v := range m.Query {
		if v.Name == "" {
			return errors.New("a query parameter has no name")
		}
		if err := v.validate(); err != nil {
			return fmt.Errorf("query parameter %q: %w", v.Name, err)
		}
	}
	return nil
}

func (v ValueMatch) validate() error {
	switch v.Kind {
	case MatchExact:
		return nil
	case MatchRegex:
		return validRegex(v.Value)
	}
	return fmt.Errorf("kind %d is unknown", v.Kind)
}

func validateFilters(fs []*Filter, inRule, prefixMatch bool) error {
	last := 0
	for i, f := range fs {
		if f == nil {
			return fmt.Errorf("filter %d is nil", i)
		}
		if i > 0 && f.Order <= last {
			return fmt.Errorf("filter %d: orders must be unique and sorted", i)
		}
		last = f.Order
		if err := f.validate(inRule, prefixMatch); err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
	}
	return nil
}

func (f *Filter) validate(inRule, prefixMatch bool) error {
	set := 0
	for _, c := range []*HeaderChange{f.RequestHeaders, f.ResponseHeaders} {
		if c == nil {
			continue
		}
		set++
		if err := c.validate(); err != nil {
			return err
		}
	}
	var path *PathChange
	if d := f.Redirect; d != nil {
		set++
		path = d.Path
		switch {
		case d.Scheme != "" && d.Scheme != "http" && d.Scheme != "https":
			return fmt.Errorf("redirect scheme %q is unknown", d.Scheme)
		case !validHost(d.Hostname) || strings.HasPrefix(d.Hostname, "*"):
			return fmt.Errorf("redirect hostname %q is malformed", d.Hostname)
		}
		switch d.Status {
		case 301, 302, 303, 307, 308:
		default:
			return fmt.Errorf("redirect status %d is unknown", d.Status)
		}
	}
	if d := f.Rewrite; d != nil {
		set++
		path = d.Path
		if !validHost(d.Hostname) || strings.HasPrefix(d.Hostname, "*") {
			return fmt.Errorf("rewrite hostname %q is malformed", d.Hostname)
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("%d of the actions are set, not one", set)
	case !inRule && (f.Redirect != nil || f.Rewrite != nil):
		return errors.New("a backend's filter may only change headers")
	case path == nil:
		return nil
	case path.Prefix && !prefixMatch:
		return errors.New("a prefix can only be replaced in a rule with a single prefix match")
	case path.Value == "" && path.Prefix, strings.HasPrefix(path.Value, "/"):
		return nil
	}
	return fmt.Errorf("replacement path %q must start with a slash", path.Value)
}

func (c *HeaderChange) validate() error {
	for _, hs := range [][]Header{c.Set, c.Add} {
		for _, h := range hs {
			if !validToken(h.Name) {
				return fmt.Errorf("header name %q is malformed", h.Name)
			}
			// RFC 9110, 5.5: CR, LF and NUL in a value are a way to smuggle.
			if strings.ContainsAny(h.Value, "\r\n\x00") {
				return fmt.Errorf("value of header %q has a control character", h.Name)
			}
		}
	}
	for _, n := range c.Remove {
		if !validToken(n) {
			return fmt.Errorf("header name %q is malformed", n)
		}
	}
	return nil
}

func (c *Cluster) validate() error {
	if c.Protocol != UpstreamHTTP1 {
		return fmt.Errorf("protocol %d is unknown", c.Protocol)
	}
	if c.Balance > BalanceConsistentHash {
		return fmt.Errorf("balance %d is unknown", c.Balance)
	}
	if err := errors.Join(c.HashOn.validate(), c.Ejection.validate(), c.Retries.validate()); err != nil {
		return err
	}
	if c.Check != nil {
		if err := c.Check.validate(); err != nil {
			return err
		}
	}
	last := ""
	for i, e := range c.Endpoints {
		if e.Address <= last {
			return fmt.Errorf("endpoint %q: addresses must be set, unique and sorted", e.Address)
		}
		last = e.Address
		if err := e.validate(); err != nil {
			return fmt.Errorf("endpoint %d %q: %w", i, e.Address, err)
		}
	}
	if c.SlowStart < 0 {
		return errors.New("the slow start is negative")
	}
	return errors.Join(c.Pool.Validate(), c.Adaptive.Validate(), c.Pressure.Validate())
}

// Validate tells what is out of range.
func (p Pool) Validate() error {
	switch {
	case p.Size < 0 || p.Size > maxWeight:
		return fmt.Errorf("the pool's size %d must be between 1 and %d", p.Size, maxWeight)
	case p.Warm < 0 || p.Warm > maxWarm:
		return fmt.Errorf("%d warm connections: must be 0 to %d", p.Warm, maxWarm)
	case p.ConnectTimeout < 0 || p.IdleTimeout < 0 || p.MaxAge < 0:
		return errors.New("a timeout of the pool is negative")
	}
	return nil
}

func (e Endpoint) validate() error {
	if e.Weight > maxWeight {
		return fmt.Errorf("weight %d is above %d", e.Weight, maxWeight)
	}
	if e.AddrPort.IsValid() {
		if e.AddrPort.String() != e.Address || e.AddrPort.Port() == 0 {
			return fmt.Errorf("the parsed address is %q", e.AddrPort)
		}
		return nil
	}
	host, port, ok := strings.Cut(e.Address, ":")
	if _, err := netip.ParseAddrPort("0.0.0.0:" + port); !ok || err != nil || port == "0" {
		return errors.New("the port is malformed")
	}
	if host == "" || !validHost(strings.ToLower(host)) || strings.HasPrefix(host, "*") {
		return errors.New("the name is malformed")
	}
	return nil
}

// validHost tells whether h is "" or a hostname, possibly with a leading
// wildcard label, in lower case.
func validHost(h string) bool {
	if h == "" {
		return true
	}
	h = strings.TrimPrefix(h, "*.")
	if len(h) > 253 {
		return false
	}
	label := 0
	for i := 0; i <= len(h); i++ {
		if i == len(h) || h[i] == '.' {
			if label == 0 || h[i-1] == '-' {
				return false
			}
			label = 0
			continue
		}
		c := h[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (c != '-' || label == 0) {
			return false
		}
		label++
	}
	return true
}

// hostWithin tells whether every host that h stands for is one that the
// listener's hostname stands for.
func hostWithin(h, listener string) bool {
	if listener == "" || h == listener {
		return true
	}
	suffix, ok := strings.CutPrefix(listener, "*")
	if !ok || h == "" {
		return false
	}
	h = strings.TrimPrefix(h, "*")
	return strings.HasSuffix(h, suffix) && len(h) > len(suffix)
}

func validRegex(expr string) error {
	// Alone first: a parenthesis too many could close the group around it.
	for _, e := range []string{expr, "^(?:" + expr + ")$"} {
		if _, err := regexp.Compile(e); err != nil {
			return fmt.Errorf("regular expression: %w", err)
		}
	}
	return nil
}

// validToken tells whether s is a token (RFC 9110, 5.6.2).
func validToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}
