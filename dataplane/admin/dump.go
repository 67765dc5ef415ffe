package admin

import (
	"bytes"
	"crypto/x509"
	"encoding"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode"

	"github.com/headgate/headgate/dataplane/ir"
)

// maxDepth ends the walk of a value that is nested beyond reason.
const maxDepth = 32

// appendSnapshot appends the snapshot as indented JSON. It walks the types of ir
// by reflection, so that what is added there is shown without a change here, and
// is strict where that could be wrong: no bytes are ever printed, secrets print
// themselves as such, and a certificate is shown by what its chain says.
func appendSnapshot(dst []byte, s *ir.Snapshot) []byte {
	var out bytes.Buffer
	// What appendValue makes is valid by construction; a test says so.
	if err := json.Indent(&out, appendValue(nil, reflect.ValueOf(s), 0), "", "  "); err != nil {
		return strconv.AppendQuote(dst, "broken dump: "+err.Error())
	}
	return append(append(dst, out.Bytes()...), '\n')
}

func appendValue(dst []byte, v reflect.Value, depth int) []byte {
	if depth > maxDepth {
		return append(dst, `"..."`...)
	}
	if !v.IsValid() {
		return append(dst, "null"...)
	}
	if v.CanInterface() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		switch x := v.Interface().(type) {
		case ir.Certificate:
			return appendCertificate(dst, &x)
		case time.Duration:
			return appendString(dst, x.String())
		case encoding.TextMarshaler:
			b, err := x.MarshalText()
			if err != nil {
				return appendString(dst, "error: "+err.Error())
			}
			return appendString(dst, string(b))
		case fmt.Stringer:
			if v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer {
				return appendString(dst, x.String()) // an enumeration
			}
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return appendValue(dst, v.Elem(), depth)
	case reflect.Struct:
		return appendStruct(dst, v, depth)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return appendString(dst, fmt.Sprintf("[%d bytes]", v.Len()))
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, v.Index(i), depth+1)
		}
		return append(dst, ']')
	case reflect.Map:
		return appendMap(dst, v, depth)
	case reflect.String:
		return appendString(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return appendString(dst, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	}
	return appendString(dst, v.Type().String())
}

// appendStruct appends the exported fields that say something: nil, empty texts
// and lists, and structs of zeros are left out.
func appendStruct(dst []byte, v reflect.Value, depth int) []byte {
	dst = append(dst, '{')
	first := true
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if !field.IsExported() || silent(value) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, lowerFirst(field.Name)), ':')
		dst = appendValue(dst, value, depth+1)
	}
	return append(dst, '}')
}

func silent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return v.IsZero()
	}
	return false
}

func appendMap(dst []byte, v reflect.Value, depth int) []byte {
	keys := make(map[string]reflect.Value, v.Len())
	names := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		name := fmt.Sprint(it.Key())
		keys[name] = it.Value()
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = appendValue(dst, keys[name], depth+1)
	}
	return append(dst, '}')
}

// appendCertificate appends what the certificates of a chain say of themselves.
func appendCertificate(dst []byte, c *ir.Certificate) []byte {
	type link struct {
		Subject  string   `json:"subject"`
		Names    []string `json:"names,omitempty"`
		Issuer   string   `json:"issuer"`
		NotAfter string   `json:"notAfter"`
		Error    string   `json:"error,omitempty"`
	}
	view := struct {
		Name  string `json:"name"`
		Chain []link `json:"chain"`
	}{Name: c.Name, Chain: []link{}}
	for rest := c.Chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			view.Chain = append(view.Chain, link{Error: err.Error()})
			continue
		}
		l := link{Subject: cert.Subject.String(), Issuer: cert.Issuer.String(), NotAfter: cert.NotAfter.UTC().Format(time.RFC3339)}
		l.Names = append(l.Names, cert.DNSNames...)
		for _, ip := range cert.IPAddresses {
			l.Names = append(l.Names, ip.String())
		}
		view.Chain = append(view.Chain, l)
	}
	b, err := json.Marshal(view)
	if err != nil {
		return appendString(dst, "error: "+err.Error())
	}
	return append(dst, b...)
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return append(dst, `""`...)
	}
	return append(dst, b...)
}

// lowerFirst turns a Go name into a JSON one: AddrPort to addrPort, TLS to tls.
func lowerFirst(name string) string {
	r := []rune(name)
	for i := range r {
		// The last capital of a run begins the next word.
		if !unicode.IsUpper(r[i]) || i > 0 && i+1 < len(r) && unicode.IsLower(r[i+1]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}
