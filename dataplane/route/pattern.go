package route

import "regexp"

// pattern is a regular expression that must match a whole value.
type pattern struct {
	regex  *regexp.Regexp
	prefix string // what every match starts with
}

// compilePattern compiles an RE2 expression and anchors it at both ends.
func compilePattern(expr string) (*pattern, error) {
	// On its own first: "a)(b" must not become well-formed by being wrapped.
	plain, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
	if err != nil {
		return nil, err
	}
	prefix, _ := plain.LiteralPrefix()
	return &pattern{regex: whole, prefix: prefix}, nil
}

// matches tells whether the whole of value matches.
func (p *pattern) matches(value []byte) bool {
	if len(value) < len(p.prefix) || string(value[:len(p.prefix)]) != p.prefix {
		return false // most values end here, at a small part of the cost
	}
	return p.regex.Match(value)
}
