package route

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestTrieNodeIsACacheLine(t *testing.T) {
	// With pointers of 32 bits it is less than one.
	if size := unsafe.Sizeof(trie{}); size > 64 || bits.UintSize == 64 && size != 64 {
		t.Errorf("a node has %d bytes", size)
	}
}

// randomKey returns a key of short and long parts that often share their
// beginnings.
func randomKey(choose chooser) string {
	parts := []string{"/a", "/b", "/ab", "/a-segment-longer-than-a-label", "/a-segment-longer", "/é", "b", "/"}
	key := ""
	for range choose(5) {
		key += pick(choose, parts)
	}
	if choose(4) == 0 {
		key += fmt.Sprintf("/%c", 'a'+choose(26)) // many kids
	}
	return key
}

// TestTrieIsAMap changes a trie and a map alike, and keeps old versions.
func TestTrieIsAMap(t *testing.T) {
	choose := seeded(2)
	type version struct {
		trie trie
		want map[string]*leaf
	}
	var root trie
	want := map[string]*leaf{}
	var versions []version
	for owner := range uint64(250) {
		versions = append(versions, version{root, maps.Clone(want)})
		for range 8 {
			key := randomKey(choose)
			if choose(2) == 0 {
				l := newLeaf([]candidate{{place: int(owner)}})
				root.set(owner+1, key, l)
				want[key] = l
			} else {
				root.del(owner+1, key) // of a key that may not be there
				delete(want, key)
			}
		}
	}
	versions = append(versions, version{root, want})
	for i, v := range versions {
		for key, l := range v.want {
			if v.trie.get(key) != l {
				t.Fatalf("version %d: %q has another leaf", i, key)
			}
		}
		for range 50 {
			if key := randomKey(choose); v.trie.get(key) != v.want[key] {
				t.Fatalf("version %d: %q has a leaf: %v", i, key, v.trie.get(key) != nil)
			}
		}
		got := 0
		v.trie.each(func([]candidate) { got++ })
		if got != len(v.want) {
			t.Fatalf("version %d has %d leaves, want %d", i, got, len(v.want))
		}
		if v.trie.empty() != (len(v.want) == 0) {
			t.Fatalf("version %d is empty: %v", i, v.trie.empty())
		}
		checkTrie(t, &v.trie)
	}
}

// checkTrie checks the order and the indexes of a trie, and that no node is
// without use.
func checkTrie(t *testing.T, n *trie) {
	t.Helper()
	for i := range n.kids {
		kid := &n.kids[i]
		if i > 0 && n.kids[i-1].label[0] >= kid.label[0] {
			t.Fatal("kids are not sorted")
		}
		if i < indexSize && n.index[i] != kid.label[0] {
			t.Fatal("the index is not that of the kids")
		}
		if kid.len == 0 || kid.len > labelSize {
			t.Fatalf("a label of %d bytes", kid.len)
		}
		if kid.leaf == nil && len(kid.kids) == 0 {
			t.Fatal("a node without a leaf and without kids")
		}
		checkTrie(t, kid)
	}
}

func TestTrieShrinks(t *testing.T) {
	var root trie
	keys := []string{"", "/a", "/ab", "/abc", "/abd", "/a/very/long/prefix/of/many/segments"}
	for _, key := range keys {
		root.set(1, key, newLeaf([]candidate{{}}))
	}
	for _, key := range keys {
		root.del(2, key)
	}
	if !root.empty() {
		t.Error("an emptied trie keeps nodes")
	}
	// What a split made is undone.
	root.set(3, "/abc", newLeaf([]candidate{{}}))
	root.set(3, "/abd", newLeaf([]candidate{{}}))
	root.del(3, "/abd")
	if kid := root.kids[0]; string(kid.label[:kid.len]) != "/abc" {
		t.Errorf("the node that is left has the label %q", kid.label[:kid.len])
	}
}

// TestTrieCopiesThePath says how much a change copies: the nodes beside the
// path are shared.
func TestTrieCopiesThePath(t *testing.T) {
	var before trie
	for i := range 200 {
		before.set(1, fmt.Sprintf("/%c/%c%d", 'a'+i%10, 'a'+i/10, i), newLeaf([]candidate{{}}))
	}
	after := before
	after.set(2, "/a/a0", newLeaf([]candidate{{place: 1}}))
	shared, copied := 0, 0
	var compare func(a, b *trie)
	compare = func(a, b *trie) {
		if len(a.kids) == 0 {
			return
		}
		if &a.kids[0] == &b.kids[0] {
			shared++
			return
		}
		copied++
		for i := range a.kids {
			compare(&a.kids[i], &b.kids[i])
		}
	}
	compare(&before, &after)
	if copied > strings.Count("/a/a0", "")+1 || shared < 9 {
		t.Errorf("copied the kids of %d nodes, shared %d", copied, shared)
	}
	if before.get("/a/a0").list[0].place != 0 || after.get("/a/a0").list[0].place != 1 {
		t.Error("the change is not in the new trie only")
	}
	// A second change of the same transaction copies nothing again.
	kids := &after.kids[0]
	after.set(2, "/a/a0", newLeaf([]candidate{{place: 2}}))
	if kids != &after.kids[0] {
		t.Error("a transaction copies what it made itself")
	}
}

func TestLeaf(t *testing.T) {
	if newLeaf(nil) != nil {
		t.Error("an empty list has a leaf")
	}
	for n := 1; n < 4; n++ {
		list := make([]candidate, n)
		for i := range list {
			list[i].place = i
		}
		l := newLeaf(slices.Clone(list))
		if len(l.list) != n || l.list[n-1].place != n-1 {
			t.Errorf("a leaf of %d candidates has %d", n, len(l.list))
		}
	}
}
