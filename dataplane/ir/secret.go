package ir

// Secret holds bytes that must not reach a log, a page or a dump: each way of
// printing it prints a placeholder.
type Secret struct{ b []byte }

const redacted = "[redacted]"

// NewSecret wraps b, which must not be changed afterwards.
func NewSecret(b []byte) Secret { return Secret{b: b} }

// Reveal returns the bytes. The caller must not change, print or keep them
// longer than it needs.
func (s Secret) Reveal() []byte { return s.b }

// String returns a placeholder.
func (Secret) String() string { return redacted }

// GoString returns a placeholder.
func (Secret) GoString() string { return redacted }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
