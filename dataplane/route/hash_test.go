package route

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"testing"
)

// content returns what a hash holds.
func content(h *hash[int]) map[string]int { return maps.Collect(h.all()) }

// TestHashIsAMap changes a hash and a map alike, and keeps old versions.
func TestHashIsAMap(t *testing.T) {
	seed := maphash.MakeSeed()
	choose := seeded(1)
	type version struct {
		hash hash[int]
		want map[string]int
	}
	var h hash[int]
	want := map[string]int{}
	var versions []version
	for owner := range uint64(400) {
		versions = append(versions, version{h, maps.Clone(want)})
		keys := 300
		if owner > 200 {
			keys = 30 // the table shrinks again
		}
		for range 20 {
			key := fmt.Sprint("key", choose(300))
			if choose(300) < keys {
				h.set(owner+1, seed, key, int(owner))
				want[key] = int(owner)
			} else {
				h.del(owner+1, seed, key)
				delete(want, key)
			}
		}
		if h.len != len(want) {
			t.Fatalf("transaction %d: %d keys, want %d", owner, h.len, len(want))
		}
	}
	versions = append(versions, version{h, want})
	for i, v := range versions {
		if !maps.Equal(content(&v.hash), v.want) {
			t.Fatalf("version %d has %d keys, want %d, or other values", i, v.hash.len, len(v.want))
		}
		for k := range 300 {
			key := fmt.Sprint("key", k)
			got, ok := v.hash.get(seed, []byte(key))
			want, wantOK := v.want[key]
			if got != want || ok != wantOK {
				t.Fatalf("version %d: %s is %d, %v; want %d, %v", i, key, got, ok, want, wantOK)
			}
		}
	}
}

// TestHashShrinks says that a table gives back what it grew.
func TestHashShrinks(t *testing.T) {
	seed := maphash.MakeSeed()
	var h hash[int]
	for i := range 10_000 {
		h.set(1, seed, fmt.Sprint(i), i)
	}
	if h.root.kids == nil {
		t.Fatal("10,000 keys in one bucket")
	}
	for i := range 10_000 {
		h.del(2, seed, fmt.Sprint(i))
	}
	if h.len != 0 || h.root.kids != nil || len(h.root.entries) != 0 {
		t.Errorf("an emptied table keeps %d keys, inner nodes: %v", h.len, h.root.kids != nil)
	}
	h.del(3, seed, "absent")
	if h.len != 0 {
		t.Errorf("%d keys after deleting an absent one", h.len)
	}
}

// TestHashCollisions gives keys hashes that agree in some or all bits.
func TestHashCollisions(t *testing.T) {
	for _, test := range []struct {
		name string
		sum  func(i int) uint64
	}{
		{"same hash", func(int) uint64 { return 42 }},
		{"same low bits", func(i int) uint64 { return uint64(i) << 40 }},
		{"same tag", func(i int) uint64 { return uint64(i) }},
		{"same tag and low bits", func(i int) uint64 { return uint64(i) << 30 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			const keys = 100
			key := func(i int) string { return fmt.Sprint("k", i) }
			var n hashNode[int]
			for i := range keys {
				if !n.set(1, test.sum(i), key(i), i) || n.set(1, test.sum(i), key(i), i+1) {
					t.Fatalf("key %d is not new, or new twice", i)
				}
			}
			for i := range keys {
				if got, ok := n.get(test.sum(i), []byte(key(i))); got != i+1 || !ok {
					t.Fatalf("key %d is %d, %v", i, got, ok)
				}
				if _, ok := n.get(test.sum(i), []byte("absent")); ok {
					t.Fatal("an absent key was found")
				}
			}
			old := n
			for i := range keys {
				if !n.del(2, test.sum(i), 0, key(i)) || n.del(2, test.sum(i), 0, key(i)) {
					t.Fatalf("key %d was not there, or there twice", i)
				}
				if _, ok := n.get(test.sum(i), []byte(key(i))); ok {
					t.Fatalf("key %d is still there", i)
				}
			}
			var left []string
			old.each(func(key string, value int) bool { left = append(left, key); return true })
			if len(left) != keys {
				t.Errorf("the old version has %d keys", len(left))
			}
		})
	}
}

// TestHashAllStops says that all can be left early.
func TestHashAllStops(t *testing.T) {
	seed := maphash.MakeSeed()
	var h hash[int]
	for i := range 100 {
		h.set(1, seed, fmt.Sprint(i), i)
	}
	var seen []int
	for _, v := range h.all() {
		if seen = append(seen, v); len(seen) == 5 {
			break
		}
	}
	if slices.Sort(seen); len(slices.Compact(seen)) != 5 {
		t.Errorf("saw %v", seen)
	}
}
