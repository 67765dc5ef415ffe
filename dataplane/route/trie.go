package route

import (
	"bytes"
	"slices"
	"strings"
)

// trie is a node of a persistent radix trie from path prefixes, without a
// trailing slash, to candidates. A copy of the root is a copy of the trie; set
// and del change only memory that the transaction owner made, and copy the
// path to it otherwise. The zero value is an empty root.
type trie struct {
	owner uint64      // the transaction that made index and kids, and may change them
	label string      // what a key has between the parent and this node
	list  []candidate // of the prefix that ends here; nil when none does
	index []byte      // the first bytes of the kids' labels, ascending
	kids  []trie
}

// next returns the kid whose label rest starts with, or nil.
func (n *trie) next(rest []byte) *trie {
	if len(rest) == 0 {
		return nil
	}
	i := bytes.IndexByte(n.index, rest[0])
	if i < 0 {
		return nil
	}
	kid := &n.kids[i]
	if len(rest) < len(kid.label) || string(rest[:len(kid.label)]) != kid.label {
		return nil
	}
	return kid
}

// get returns the candidates of key.
func (n *trie) get(key string) []candidate {
	for key != "" {
		i, ok := slices.BinarySearch(n.index, key[0])
		if !ok || !strings.HasPrefix(key, n.kids[i].label) {
			return nil
		}
		n = &n.kids[i]
		key = key[len(n.label):]
	}
	return n.list
}

// set sets the candidates of key on behalf of the transaction owner. The list
// is not empty.
func (n *trie) set(owner uint64, key string, list []candidate) {
	for key != "" {
		n.own(owner)
		i, ok := slices.BinarySearch(n.index, key[0])
		if !ok {
			n.index = slices.Insert(n.index, i, key[0])
			n.kids = slices.Insert(n.kids, i, trie{owner: owner, label: key, list: list})
			return
		}
		n = &n.kids[i]
		common := commonPrefix(n.label, key)
		if common < len(n.label) {
			rest := *n
			rest.label = n.label[common:]
			*n = trie{owner: owner, label: n.label[:common], index: []byte{rest.label[0]}, kids: []trie{rest}}
		}
		key = key[common:]
	}
	n.list = list
}

// del removes key, which is there, on behalf of the transaction owner.
func (n *trie) del(owner uint64, key string) {
	if key == "" {
		n.list = nil
		return
	}
	n.own(owner)
	i, ok := slices.BinarySearch(n.index, key[0])
	if !ok || !strings.HasPrefix(key, n.kids[i].label) {
		return
	}
	kid := &n.kids[i]
	kid.del(owner, key[len(kid.label):])
	if kid.list != nil {
		return
	}
	switch len(kid.kids) {
	case 0:
		n.index = slices.Delete(n.index, i, i+1)
		n.kids = slices.Delete(n.kids, i, i+1)
	case 1:
		only := kid.kids[0]
		only.label = kid.label + only.label
		*kid = only
	}
}

// own makes sure that what n points to may be changed by owner.
func (n *trie) own(owner uint64) {
	if n.owner == owner {
		return
	}
	n.owner = owner
	n.index = slices.Clone(n.index)
	n.kids = slices.Clone(n.kids)
}

// empty tells whether the trie has no key; n is the root.
func (n *trie) empty() bool { return n.list == nil && len(n.kids) == 0 }

// each calls visit with every list, in the order of the keys.
func (n *trie) each(visit func([]candidate)) {
	if n.list != nil {
		visit(n.list)
	}
	for i := range n.kids {
		n.kids[i].each(visit)
	}
}

// commonPrefix returns the length of the longest common prefix.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
