package ir

// trail walks a sorted list of the last snapshot beside the one of the next, to
// find the parts that are the same pointers: those did not change.
type trail[T any] struct {
	old  []*T
	at   int
	name func(*T) string
}

func follow[T any](old []*T, name func(*T) string) trail[T] { return trail[T]{old: old, name: name} }

// find returns where the part was. It is asked for one part after the other, by
// ascending names.
func (t *trail[T]) find(x *T) (int, bool) {
	for ; t.at < len(t.old); t.at++ {
		if t.old[t.at] == x {
			t.at++
			return t.at - 1, true
		}
		if t.name(t.old[t.at]) > t.name(x) {
			break
		}
	}
	return 0, false
}
