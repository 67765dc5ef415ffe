package route

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// conditions are what a candidate asks for besides an exact path or a prefix.
type conditions struct {
	path    *pattern // nil unless the path is a regular expression
	method  string   // "" is any
	headers []valueCondition
	query   []valueCondition
}

// valueCondition compares one header field or query parameter.
type valueCondition struct {
	source source
	name   string
	value  string
	regex  *pattern // replaces value when set
}

// source is where a request keeps a value.
type source uint8

const (
	fromHeaders source = iota
	fromHost           // message.Request keeps Host and Upgrade outside of its
	fromUpgrade        // headers, yet routes may match them
	fromQuery
)

// compileConditions returns what m asks for besides an exact path or a prefix,
// or nil when that is nothing.
func compileConditions(m *ir.Match) (*conditions, error) {
	if m.Path.Kind != ir.MatchRegex && m.Method == "" && len(m.Headers) == 0 && len(m.Query) == 0 {
		return nil, nil
	}
	c := &conditions{method: m.Method}
	if m.Path.Kind == ir.MatchRegex {
		re, err := compilePattern(m.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("path: %w", err)
		}
		c.path = re
	}
	for i := range m.Headers {
		if repeats(m.Headers, i, strings.EqualFold) {
			continue
		}
		v, err := compileValue(&m.Headers[i], fromHeaders)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", m.Headers[i].Name, err)
		}
		c.headers = append(c.headers, v)
	}
	for i := range m.Query {
		if repeats(m.Query, i, func(a, b string) bool { return a == b }) {
			continue
		}
		v, err := compileValue(&m.Query[i], fromQuery)
		if err != nil {
			return nil, fmt.Errorf("query parameter %s: %w", m.Query[i].Name, err)
		}
		c.query = append(c.query, v)
	}
	return c, nil
}

// repeats tells whether the name of matches[i] came before. The Gateway API
// says that only the first entry with a name counts.
func repeats(matches []ir.ValueMatch, i int, same func(a, b string) bool) bool {
	for j := range i {
		if same(matches[j].Name, matches[i].Name) {
			return true
		}
	}
	return false
}

func compileValue(m *ir.ValueMatch, from source) (valueCondition, error) {
	c := valueCondition{source: from, name: m.Name, value: m.Value}
	if from == fromHeaders {
		switch strings.ToLower(m.Name) {
		case "host":
			c.source = fromHost
		case "upgrade":
			c.source = fromUpgrade
		}
	}
	switch m.Kind {
	case ir.MatchExact:
	case ir.MatchRegex:
		re, err := compilePattern(m.Value)
		if err != nil {
			return c, err
		}
		c.regex = re
	default:
		return c, fmt.Errorf("match kind %d is not known here", m.Kind)
	}
	return c, nil
}

// checkPath tells what is wrong with the path of a match that is no regular
// expression.
func checkPath(p ir.PathMatch) error {
	if p.Kind == ir.MatchRegex {
		return nil
	}
	if p.Kind != ir.MatchExact && p.Kind != ir.MatchPrefix {
		return fmt.Errorf("path: match kind %d is not known", p.Kind)
	}
	if !strings.HasPrefix(p.Value, "/") {
		return fmt.Errorf("path %q does not start with a slash", p.Value)
	}
	normal, err := message.NormalizePath(nil, []byte(p.Value))
	if err != nil {
		return fmt.Errorf("path %q: %w", p.Value, err)
	}
	if string(normal) != p.Value {
		// A request's path is normal, so this one would never match.
		return fmt.Errorf("path %q is not normal: want %q", p.Value, normal)
	}
	return nil
}

// errNoMatches says that a rule can't ever hold.
var errNoMatches = errors.New("the rule has no matches")

// failure says which condition of a candidate does not hold.
type failure struct {
	kind  failureKind
	index int // of the header or query condition
}

type failureKind uint8

const (
	holds failureKind = iota
	failsPath
	failsMethod
	failsHeader
	failsQuery
)

// check returns the first condition that req does not meet, or the zero
// failure. A nil c holds. It is the only place where requests are compared
// with conditions: Lookup and Explain both come here.
func (c *conditions) check(req *message.Request, m *Match) failure {
	if c == nil {
		return failure{}
	}
	if c.path != nil && !c.path.matches(req.Path) {
		return failure{kind: failsPath}
	}
	if c.method != "" && c.method != string(req.Method) {
		return failure{kind: failsMethod}
	}
	for i := range c.headers {
		if !c.headers[i].holds(req, m) {
			return failure{kind: failsHeader, index: i}
		}
	}
	for i := range c.query {
		if !c.query[i].holds(req, m) {
			return failure{kind: failsQuery, index: i}
		}
	}
	return failure{}
}

// holds compares the request's value with the condition.
func (v *valueCondition) holds(req *message.Request, m *Match) bool {
	value, ok := v.find(req, m)
	if !ok {
		return false
	}
	if v.regex != nil {
		return v.regex.matches(value)
	}
	return string(value) == v.value
}

// find returns the value that the condition is about and whether the request
// has it. The value may lie in m's scratch memory.
func (v *valueCondition) find(req *message.Request, m *Match) (value []byte, ok bool) {
	switch v.source {
	case fromHost:
		return req.Host, len(req.Host) > 0
	case fromUpgrade:
		return req.Upgrade, len(req.Upgrade) > 0
	case fromQuery:
		if len(req.Query) > cap(m.scratch) && bytes.ContainsAny(req.Query, "%+") {
			m.scratch = make([]byte, 0, len(req.Query)) // decoding never lengthens
		}
		return message.QueryValue(m.scratch[:0], req.Query, v.name)
	}
	return joined(&req.Headers, v.name, m)
}

// joined returns the value of a field, comma-joined when it is repeated
// (RFC 9110, 5.3).
func joined(h *message.Headers, name string, m *Match) (value []byte, ok bool) {
	first := h.Index(name, 0)
	if first < 0 {
		return nil, false
	}
	next := h.Index(name, first+1)
	if next < 0 {
		return h.Fields()[first].Value, true
	}
	value = append(m.scratch[:0], h.Fields()[first].Value...)
	for ; next >= 0; next = h.Index(name, next+1) {
		value = append(value, ", "...)
		value = append(value, h.Fields()[next].Value...)
	}
	m.scratch = value[:0]
	return value, true
}
