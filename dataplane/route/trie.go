package route

import "slices"

const (
	labelSize = 11 // bytes of a label; what is longer becomes a chain of nodes
	indexSize = 12 // kids whose first bytes stand in their parent
)

// trie is a node of a persistent radix trie from path prefixes, without a
// trailing slash, to candidates. A copy of the root is a copy of the trie; set
// and del change only memory that the transaction owner made, and copy the
// path to it otherwise. The zero value is an empty root.
//
// A node is one cache line, with its label and the first bytes of its kids in
// place, and kids lie side by side: a step down costs one line of memory.
type trie struct {
	owner uint64 // the transaction that made kids, and may change them
	leaf  *leaf  // of the prefix that ends here; nil when none does
	kids  []trie // ascending by the first byte of their labels
	len   uint8  // of label
	label [labelSize]byte
	index [indexSize]byte // the first bytes of the first kids' labels
}

// leaf is the end of a path: its candidates, the best first.
type leaf struct {
	list []candidate
	one  [1]candidate // what list is of when there is only one: most often
}

// newLeaf returns a leaf, or nil for an empty list.
func newLeaf(list []candidate) *leaf {
	switch len(list) {
	case 0:
		return nil
	case 1:
		l := &leaf{one: [1]candidate{list[0]}}
		l.list = l.one[:]
		return l
	}
	return &leaf{list: list}
}

// next returns the kid whose label rest starts with, or nil.
func (n *trie) next(rest []byte) *trie {
	if len(rest) == 0 {
		return nil
	}
	i, ok := n.find(rest[0])
	if !ok {
		return nil
	}
	kid := &n.kids[i]
	size := int(kid.len)
	if len(rest) < size || string(rest[:size]) != string(kid.label[:size]) {
		return nil
	}
	return kid
}

// find returns the place of the kid whose label starts with c and whether it
// is there.
func (n *trie) find(c byte) (int, bool) {
	if len(n.kids) > indexSize {
		return n.search(c)
	}
	for i := range n.kids {
		if n.index[i] >= c {
			return i, n.index[i] == c
		}
	}
	return len(n.kids), false
}

// search is find for a node with more kids than its index holds.
func (n *trie) search(c byte) (int, bool) {
	return slices.BinarySearchFunc(n.kids, c, func(kid trie, c byte) int { return int(kid.label[0]) - int(c) })
}

// get returns the leaf of key, or nil.
func (n *trie) get(key string) *leaf {
	for key != "" {
		n = n.next([]byte(key))
		if n == nil {
			return nil
		}
		key = key[n.len:]
	}
	return n.leaf
}

// set sets the leaf of key on behalf of the transaction owner.
func (n *trie) set(owner uint64, key string, l *leaf) {
	for key != "" {
		n.own(owner)
		i, ok := n.find(key[0])
		if !ok {
			kid := trie{owner: owner}
			kid.len = uint8(copy(kid.label[:], key))
			n.kids = slices.Insert(n.kids, i, kid)
			n.reindex()
		}
		n = &n.kids[i]
		common := commonPrefix(string(n.label[:n.len]), key)
		if common < int(n.len) {
			n.split(owner, common)
		}
		key = key[common:]
	}
	n.leaf = l
}

// split makes n end after its label's first size bytes and puts a kid with the
// rest of it in between.
func (n *trie) split(owner uint64, size int) {
	rest := *n
	rest.len = uint8(copy(rest.label[:], n.label[size:n.len]))
	top := trie{owner: owner, kids: []trie{rest}}
	top.len = uint8(copy(top.label[:], n.label[:size]))
	top.reindex()
	*n = top
}

// del removes key on behalf of the transaction owner.
func (n *trie) del(owner uint64, key string) {
	if key == "" {
		n.leaf = nil
		return
	}
	n.own(owner)
	kid := n.next([]byte(key))
	if kid == nil {
		return
	}
	kid.del(owner, key[kid.len:])
	switch {
	case kid.leaf != nil:
	case len(kid.kids) == 0:
		i, _ := n.find(key[0])
		n.kids = slices.Delete(n.kids, i, i+1)
		n.reindex()
	case len(kid.kids) == 1 && int(kid.len+kid.kids[0].len) <= labelSize:
		only := kid.kids[0]
		label := kid.label
		only.len = kid.len + uint8(copy(label[kid.len:], only.label[:only.len]))
		only.label = label
		*kid = only
	}
}

// reindex brings index up to date with kids.
func (n *trie) reindex() {
	n.index = [indexSize]byte{}
	for i := range min(len(n.kids), indexSize) {
		n.index[i] = n.kids[i].label[0]
	}
}

// own makes sure that what n points to may be changed by owner.
func (n *trie) own(owner uint64) {
	if n.owner == owner {
		return
	}
	n.owner = owner
	n.kids = slices.Clone(n.kids)
}

// empty tells whether the trie has no key; n is the root.
func (n *trie) empty() bool { return n.leaf == nil && len(n.kids) == 0 }

// each calls visit with every list, in the order of the keys.
func (n *trie) each(visit func([]candidate)) {
	if n.leaf != nil {
		visit(n.leaf.list)
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
