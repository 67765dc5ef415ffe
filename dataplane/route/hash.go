package route

import (
	"hash/maphash"
	"iter"
	"slices"
)

const (
	hashBits   = 4             // of the hash, for one level
	hashFan    = 1 << hashBits // children of an inner node
	bucketSize = 8             // entries of a bucket before it is split
)

// hash is a persistent hash table from strings to V: a trie over the bits of
// the key's hash whose leaves are small buckets. A copy of the struct is a
// copy of the table; set and del change only memory that the transaction
// owner made, and copy the path to it otherwise. The zero value is empty.
type hash[V any] struct {
	root hashNode[V]
	len  int
}

// hashNode is an inner node when kids is set, else a bucket.
type hashNode[V any] struct {
	owner   uint64 // the transaction that made kids and entries, and may change them
	kids    *[hashFan]hashNode[V]
	entries []hashEntry[V]
	tags    [bucketSize]uint8 // of the first entries: the upper bits of their hashes
}

type hashEntry[V any] struct {
	hash  uint64
	key   string
	value V
}

// get returns the value of key.
func (h *hash[V]) get(seed maphash.Seed, key []byte) (value V, ok bool) {
	if h.len == 0 {
		return value, false
	}
	return h.root.get(maphash.Bytes(seed, key), key)
}

func (n *hashNode[V]) get(sum uint64, key []byte) (value V, ok bool) {
	for bits := sum; n.kids != nil; bits >>= hashBits {
		n = &n.kids[bits%hashFan]
	}
	// The tags lie beside the pointers that led here: a key that is not in the
	// table is told without a look at the entries.
	tag := uint8(sum >> 56)
	for i := range n.entries {
		if i < bucketSize && n.tags[i] != tag {
			continue
		}
		if e := &n.entries[i]; e.hash == sum && e.key == string(key) {
			return e.value, true
		}
	}
	return value, false
}

// set sets the value of key on behalf of the transaction owner.
func (h *hash[V]) set(owner uint64, seed maphash.Seed, key string, value V) {
	if h.root.set(owner, maphash.String(seed, key), key, value) {
		h.len++
	}
}

// set tells whether the key is new.
func (n *hashNode[V]) set(owner, sum uint64, key string, value V) bool {
	level := 0
	for n.own(owner); n.kids != nil; n.own(owner) {
		n = &n.kids[sum>>(level*hashBits)%hashFan]
		level++
	}
	for i := range n.entries {
		if e := &n.entries[i]; e.hash == sum && e.key == key {
			e.key, e.value = key, value // the old key's memory may be a whole file's
			return false
		}
	}
	n.entries = append(n.entries, hashEntry[V]{hash: sum, key: key, value: value})
	n.split(owner, level)
	n.tag()
	return true
}

// tag brings tags up to date with entries.
func (n *hashNode[V]) tag() {
	for i := range min(len(n.entries), bucketSize) {
		n.tags[i] = uint8(n.entries[i].hash >> 56)
	}
}

// split turns n into an inner node when its bucket is too large and the hash
// has bits left.
func (n *hashNode[V]) split(owner uint64, level int) {
	if len(n.entries) <= bucketSize || level*hashBits >= 64 {
		return
	}
	kids := new([hashFan]hashNode[V])
	for _, e := range n.entries {
		kid := &kids[e.hash>>(level*hashBits)%hashFan]
		kid.entries = append(kid.entries, e)
	}
	for i := range kids {
		kids[i].owner = owner
		kids[i].split(owner, level+1)
		kids[i].tag()
	}
	n.kids, n.entries = kids, nil
}

// del removes key on behalf of the transaction owner.
func (h *hash[V]) del(owner uint64, seed maphash.Seed, key string) {
	if h.root.del(owner, maphash.String(seed, key), 0, key) {
		h.len--
	}
}

func (n *hashNode[V]) del(owner, sum uint64, level int, key string) bool {
	n.own(owner)
	if n.kids != nil {
		if !n.kids[sum>>(level*hashBits)%hashFan].del(owner, sum, level+1, key) {
			return false
		}
		n.join()
		return true
	}
	i := slices.IndexFunc(n.entries, func(e hashEntry[V]) bool { return e.hash == sum && e.key == key })
	if i < 0 {
		return false
	}
	n.entries = slices.Delete(n.entries, i, i+1)
	n.tag()
	return true
}

// join turns an inner node back into a bucket when its children are buckets
// that fill half of one: the gap keeps a table at the border from splitting
// and joining again and again.
func (n *hashNode[V]) join() {
	total := 0
	for i := range n.kids {
		if n.kids[i].kids != nil {
			return
		}
		total += len(n.kids[i].entries)
	}
	if total > bucketSize/2 {
		return
	}
	entries := make([]hashEntry[V], 0, total)
	for i := range n.kids {
		entries = append(entries, n.kids[i].entries...)
	}
	n.kids, n.entries = nil, entries
	n.tag()
}

// own makes sure that what n points to may be changed by owner.
func (n *hashNode[V]) own(owner uint64) {
	if n.owner == owner {
		return
	}
	n.owner = owner
	if n.kids != nil {
		kids := *n.kids
		n.kids = &kids
		return
	}
	n.entries = slices.Clone(n.entries)
}

// all yields every entry, in no order.
func (h *hash[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { h.root.each(yield) }
}

func (n *hashNode[V]) each(yield func(string, V) bool) bool {
	if n.kids != nil {
		for i := range n.kids {
			if !n.kids[i].each(yield) {
				return false
			}
		}
	}
	for i := range n.entries {
		if !yield(n.entries[i].key, n.entries[i].value) {
			return false
		}
	}
	return true
}
