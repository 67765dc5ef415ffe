package filter

import (
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// rewrite changes the host and the path that the backend sees.
type rewrite struct{ ir.Rewrite }

func (f *rewrite) Request(x *Exchange) bool {
	r := x.Request
	if f.Hostname != "" {
		r.Host = r.Headers.StoreString(f.Hostname)
	}
	if f.Path != nil {
		r.Path = changePath(&r.Headers, f.Path, x.Prefix, r.Path)
	}
	return true
}

// changePath returns the path that c makes of path, stored in the arena of h.
// The cases of a prefix are the table in Gateway API's HTTPPathModifier: the
// rest of the path keeps its slash, and no second slash comes before it.
func changePath(h *message.Headers, c *ir.PathChange, prefix int, path []byte) []byte {
	if !c.Prefix {
		return h.StoreString(orRoot(c.Value))
	}
	rest := path[min(prefix, len(path)):]
	if len(rest) == 0 {
		return h.StoreString(orRoot(c.Value))
	}
	base := strings.TrimSuffix(c.Value, "/")
	if base == "" {
		return rest
	}
	start := h.StoreString(base)
	return h.Extend(start, rest)
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
