package message

// Field is one header field as it was received: the name's case is kept, the
// value has no surrounding white space.
type Field struct {
	Name  []byte
	Value []byte
}

// Headers is an ordered header block. Names are compared without regard to
// ASCII case. The zero value is empty and ready to use.
type Headers struct {
	fields []Field
	arena  []byte // what the fields point into; only ever appended to
}

// Reset empties the block and keeps its memory.
func (h *Headers) Reset() {
	clear(h.fields) // drop what an earlier, larger arena may still hold
	h.fields = h.fields[:0]
	h.arena = h.arena[:0]
}

// Retained returns the bytes that Reset keeps, so that an owner can drop a
// block that one large message made large.
func (h *Headers) Retained() int { return cap(h.arena) + 48*cap(h.fields) }

// Store copies p into the block's arena and returns the copy, which is valid
// until Reset. A codec stores a whole head once and appends fields that are
// slices of it.
func (h *Headers) Store(p []byte) []byte {
	n := len(h.arena)
	h.arena = append(h.arena, p...)
	return h.arena[n:len(h.arena):len(h.arena)]
}

// StoreString is Store for a string.
func (h *Headers) StoreString(s string) []byte {
	n := len(h.arena)
	h.arena = append(h.arena, s...)
	return h.arena[n:len(h.arena):len(h.arena)]
}

// Append adds a field without copying it: name and value must live until Reset.
func (h *Headers) Append(name, value []byte) {
	h.fields = append(h.fields, Field{Name: name, Value: value})
}

// Add adds a field and copies it.
func (h *Headers) Add(name, value string) {
	h.fields = append(h.fields, Field{Name: h.StoreString(name), Value: h.StoreString(value)})
}

// Len returns the number of fields.
func (h *Headers) Len() int { return len(h.fields) }

// Fields returns the fields in order; the slice is valid until the next change.
func (h *Headers) Fields() []Field { return h.fields }

// Index returns the place of the first field called name at or after from, or
// -1.
func (h *Headers) Index(name string, from int) int {
	for i := from; i < len(h.fields); i++ {
		if EqualFold(h.fields[i].Name, name) {
			return i
		}
	}
	return -1
}

// Get returns the first value of name, or nil.
func (h *Headers) Get(name string) []byte {
	if i := h.Index(name, 0); i >= 0 {
		return h.fields[i].Value
	}
	return nil
}

// Has tells whether a field called name is there.
func (h *Headers) Has(name string) bool { return h.Index(name, 0) >= 0 }

// Combined returns the values of name joined with ", " (RFC 9110, 5.3) and
// whether there is one. It allocates nothing unless the field is repeated.
func (h *Headers) Combined(name string) ([]byte, bool) {
	first := h.Index(name, 0)
	if first < 0 {
		return nil, false
	}
	next := h.Index(name, first+1)
	if next < 0 {
		return h.fields[first].Value, true
	}
	joined := append([]byte(nil), h.fields[first].Value...)
	for i := next; i >= 0; i = h.Index(name, i+1) {
		joined = append(joined, ", "...)
		joined = append(joined, h.fields[i].Value...)
	}
	return joined, true
}

// Set leaves one field called name, with value; it stands where the first one
// stood, else at the end. The value is copied.
func (h *Headers) Set(name, value string) {
	h.SetBytes(name, h.StoreString(value))
}

// SetBytes is Set without copying value, which must live until Reset.
func (h *Headers) SetBytes(name string, value []byte) {
	i := h.Index(name, 0)
	if i < 0 {
		h.fields = append(h.fields, Field{Name: h.StoreString(name), Value: value})
		return
	}
	h.fields[i].Value = value
	h.delete(name, i+1)
}

// Del removes every field called name and tells whether there was one.
func (h *Headers) Del(name string) bool { return h.delete(name, 0) }

// delete removes the fields called name at or after from.
func (h *Headers) delete(name string, from int) bool {
	i := h.Index(name, from)
	if i < 0 {
		return false
	}
	kept := h.fields[:i]
	for _, f := range h.fields[i+1:] {
		if !EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	clear(h.fields[len(kept):])
	h.fields = kept
	return true
}

// DeleteFunc removes every field for which drop returns true.
func (h *Headers) DeleteFunc(drop func(name []byte) bool) {
	kept := h.fields[:0]
	for _, f := range h.fields {
		if !drop(f.Name) {
			kept = append(kept, f)
		}
	}
	clear(h.fields[len(kept):])
	h.fields = kept
}

// Size returns the bytes of all names and values.
func (h *Headers) Size() int {
	n := 0
	for _, f := range h.fields {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// EqualFold compares a and b without regard to ASCII case. It never folds
// anything outside of ASCII.
func EqualFold(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}

// Replace is Set for a field that lives until Reset: nothing is copied.
func (h *Headers) Replace(f Field) {
	i := h.Index(string(f.Name), 0)
	if i < 0 {
		h.fields = append(h.fields, f)
		return
	}
	h.fields[i].Value = f.Value
	h.delete(string(f.Name), i+1)
}

// Extend returns start followed by a copy of p, in the arena. start must be the
// last thing that was stored.
func (h *Headers) Extend(start, p []byte) []byte {
	h.arena = append(h.arena, p...)
	n := len(h.arena)
	return h.arena[n-len(start)-len(p) : n : n]
}
