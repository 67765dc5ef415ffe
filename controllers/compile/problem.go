package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a problem is.
type Severity uint8

// The severities.
const (
	// Error is something that the objects ask for and that is not done.
	Error Severity = iota + 1
	// Warning is something that is done, and probably not what was meant.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one thing that an operator should know, and the way out.
type Problem struct {
	Severity Severity `json:"severity"`
	// Kind, Namespace and Name are the object; Kind is empty for a problem of a
	// whole file.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is the path inside of the object, such as "spec.rules[0].filters[1]".
	Field string `json:"field,omitempty"`
	// Reason is a condition's reason, or a word of the source.
	Reason string `json:"reason,omitempty"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
	// File and Line say where, when the source has files. Line starts at 1.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// MarshalText returns the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Object returns "Kind namespace/name", or "" for a problem of a whole file.
func (p Problem) Object() string {
	switch {
	case p.Kind == "":
		return ""
	case p.Namespace == "":
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// String returns the problem as one line: "file:line: Kind namespace/name: field:
// message", without the parts that it does not have.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", p.File, max(p.Line, 1))
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	if o := p.Object(); o != "" {
		b.WriteString(o + ": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Message
}

// SortProblems orders problems by file, line, object and field, so that a list
// reads the same every time.
func SortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
}

// issue is a problem of an object that is being compiled.
type issue struct {
	severity Severity
	field    string
	reason   string
	message  string
}

// issues collects what is wrong with one object.
type issues []issue

func (is *issues) add(severity Severity, field, reason, message string) {
	*is = append(*is, issue{severity, field, reason, message})
}

// problems returns the issues as problems of an object.
func (is issues) problems(kind, namespace, name string) []Problem {
	ps := make([]Problem, len(is))
	for i, x := range is {
		ps[i] = Problem{
			Severity: x.severity, Kind: kind, Namespace: namespace, Name: name,
			Field: x.field, Reason: x.reason, Message: x.message,
		}
	}
	return ps
}
