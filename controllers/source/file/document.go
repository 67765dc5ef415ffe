package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/controllers/compile"
)

// document is one YAML document of a file, read once for each text that it had.
// Lines in it count from 0 at its first line.
type document struct {
	text    string
	objects []*object
	faults  []fault
}

// object is one object of a document.
type object struct {
	kind *kind
	meta metav1.Object
	json []byte // what was decoded, in one form for one meaning
	path string // of the object in the document: "" or "items[3]"
}

// fault is a problem of a document.
type fault struct {
	severity compile.Severity
	object   *object // nil when there is no object to name
	path     string  // in the document
	line     int     // used when path is ""
	field    string  // in the object
	message  string
}

// broken tells whether a fault keeps the document from being used.
func (d *document) broken() bool {
	for _, f := range d.faults {
		if f.severity == compile.Error {
			return true
		}
	}
	return false
}

// part is a document's place in its file.
type part struct {
	line int // from 0
	text string
}

// split cuts a file into its documents, at lines that start with "---".
func split(data string) []part {
	var parts []part
	start, startLine, line := 0, 0, 0
	for at := 0; at < len(data); {
		end := strings.IndexByte(data[at:], '\n')
		next := len(data)
		if end >= 0 {
			next = at + end + 1
		}
		if isSeparator(data[at:next]) {
			parts = append(parts, part{startLine, data[start:at]})
			// What stands behind the dashes belongs to the new document.
			start, startLine = at+3, line
		}
		at = next
		line++
	}
	return append(parts, part{startLine, data[start:]})
}

func isSeparator(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// blank tells whether a document has nothing but comments and end marks.
func blank(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line != "..." && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// read decodes a document. check tells whether to make the checks of the CRDs.
func read(text string, check bool) *document {
	d := &document{text: text}
	if blank(text) {
		return d
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		d.syntax(err)
		return d
	}
	d.decode(data, "", check)
	return d
}

var lineOf = regexp.MustCompile(`line (\d+): `)

// syntax notes what a YAML parser says, line by line.
func (d *document) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	for msg := range strings.SplitSeq(text, "\n") {
		f := fault{severity: compile.Error, message: strings.TrimSpace(msg)}
		if m := lineOf.FindStringSubmatchIndex(f.message); m != nil {
			if n, err := strconv.Atoi(f.message[m[2]:m[3]]); err == nil {
				f.line = max(n-1, 0)
			}
			f.message = f.message[:m[0]] + f.message[m[1]:]
		}
		f.message = "is not YAML: " + f.message
		d.faults = append(d.faults, f)
	}
}

// header is what every object starts with.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// decode decodes one object, or a list of them, at a path in the document.
func (d *document) decode(data []byte, path string, check bool) {
	var h header
	bad := func(severity compile.Severity, format string, args ...any) {
		d.faults = append(d.faults, fault{severity: severity, path: path, message: fmt.Sprintf(format, args...)})
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &h); err != nil {
		if field, msg := strictField(plain(err)); field != "" {
			path = join(path, field)
			bad(compile.Error, "%s: %s", field, msg)
			return
		}
		bad(compile.Error, "is not an object: %s", plain(err))
		return
	}
	switch {
	case h.Kind == "":
		bad(compile.Error, "has no kind")
		return
	case h.APIVersion == "":
		bad(compile.Error, "has no apiVersion")
		return
	}
	if strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		if path != "" {
			bad(compile.Error, "is a list in a list")
			return
		}
		for i, item := range h.Items {
			d.decode(item, fmt.Sprintf("items[%d]", i), check)
		}
		return
	}
	k := kindOf(h.APIVersion, h.Kind)
	if k == nil {
		name := h.Metadata.Name
		if h.Metadata.Namespace != "" {
			name = h.Metadata.Namespace + "/" + name
		}
		bad(compile.Warning, "%s %s of %s is not a kind that Headgate reads; it is ignored", h.Kind, name, h.APIVersion)
		return
	}
	o := &object{kind: k, path: path, meta: k.new()}
	strict, err := kjson.UnmarshalStrict(data, o.meta)
	if err != nil {
		strict = append(strict, err)
	}
	// The name first: it is how the other faults are told.
	o.identify()
	for _, err := range strict {
		f := fault{severity: compile.Error, object: o, message: plain(err)}
		f.field, f.message = strictField(f.message)
		d.faults = append(d.faults, f)
	}
	if len(strict) > 0 {
		return
	}
	o.json = compact(data)
	k.defaults(o.meta)
	checks := &checker{}
	checks.metadata(k, o.meta)
	if check {
		k.check(checks, o.meta)
	}
	for _, f := range checks.faults {
		f.object = o
		d.faults = append(d.faults, f)
	}
	if len(checks.faults) == 0 {
		d.objects = append(d.objects, o)
	}
}

// identify clears what only an API server may set. A copied resourceVersion, say,
// would make an edited object look like the old one.
func (o *object) identify() {
	m := o.meta
	m.SetUID("")
	m.SetResourceVersion("")
	m.SetGeneration(0)
	m.SetManagedFields(nil)
	m.SetDeletionTimestamp(nil)
	if o.kind.namespaced && m.GetNamespace() == "" {
		m.SetNamespace(defaultNamespace)
	}
}

// compact returns JSON without white space.
func compact(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}

var (
	unknownField = regexp.MustCompile(`^(unknown|duplicate) field "(.+)"$`)
	wrongType    = regexp.MustCompile(`^json: cannot unmarshal (\S+) .*into Go struct field \w*\.(\S+) of type (\S+)$`)
)

// strictField takes the field out of a decoder's message.
func strictField(msg string) (field, message string) {
	if m := unknownField.FindStringSubmatch(msg); m != nil {
		return m[2], m[1] + " field"
	}
	if m := wrongType.FindStringSubmatch(msg); m != nil {
		// Embedded structs are in the decoder's path and not in the file.
		names := slices.DeleteFunc(strings.Split(m[2], "."), func(n string) bool { return n != "" && n[0] >= 'A' && n[0] <= 'Z' })
		return strings.Join(names, "."), fmt.Sprintf("is %s, and must be %s", valueName(m[1]), typeName(m[3], m[1])) + quoting(m[1], m[3])
	}
	return "", msg
}

// quoting is the advice for a text that YAML takes for something else, as it does
// with y, no, on and 80.
func quoting(value, want string) string {
	if (want == "string" || strings.HasPrefix(want, "v1.")) && (value == "bool" || value == "number") {
		return "; put it in quotes"
	}
	return ""
}

// valueName is the decoder's word for a value, in ours.
func valueName(kind string) string {
	switch kind {
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "object":
		return "an object"
	}
	return "a " + kind
}

// typeName is a Go type, in the words of a file. Named types of the API are texts or
// objects; the value that does not fit tells which.
func typeName(t, value string) string {
	switch {
	case strings.HasPrefix(t, "v1.") && (value == "bool" || value == "number"):
		return "a string"
	case strings.HasPrefix(t, "v1."), strings.HasPrefix(t, "map["):
		return "an object"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case t == "bool":
		return "true or false"
	case t == "string":
		return "a string"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a number"
	}
	return "of the type " + t
}

// plain is an error's text without the decoder's words.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "strict decoding error: ") }
