package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// desk is a planner with a clock and one subject, whose object says what its
// label says.
type desk struct {
	*testing.T
	planner
	at      time.Time
	stored  int // version on the server
	label   string
	shown   *gatewayv1.Gateway // what the source shows
	written int
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, at: time.Unix(1e9, 0), stored: 1}
	d.shown = d.gateway(1, "")
	d.planner = planner{progress: make(map[subjectKey]*progress), now: func() time.Time { return d.at }}
	return d
}

func (d *desk) gateway(version int, label string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "gw", ResourceVersion: fmt.Sprint(version), Labels: map[string]string{"says": label}}}
}

// want begins a turn in which the object should say the label.
func (d *desk) want(label string) {
	s := subject{subjectKey: subjectKey{"Gateway", types.NamespacedName{Name: "gw"}}, says: label, object: d.shown}
	s.change = func(have client.Object, _ metav1.Time) write {
		if have.GetLabels()["says"] == label {
			return nil
		}
		return func(context.Context, client.Client) (client.Object, error) {
			if have.GetResourceVersion() != fmt.Sprint(d.stored) {
				return nil, apierrors.NewConflict(schema.GroupResource{}, "gw", errors.New("changed"))
			}
			d.stored++
			d.label = label
			d.written++
			return d.gateway(d.stored, label), nil
		}
	}
	d.take(&turn{}, []subject{s})
}

// do performs what is due, and returns how long to wait for more.
func (d *desk) do() time.Duration {
	jobs, wait := d.next(10)
	for _, j := range jobs {
		o, err := j.write(d.Context(), nil)
		d.done(outcome{key: j.key, says: j.says, base: j.base, object: o, err: err}, func(t time.Duration) time.Duration { return t })
	}
	if len(jobs) > 0 {
		_, wait = d.next(10)
	}
	return wait
}

// show has the source show what is stored.
func (d *desk) show() { d.shown = d.gateway(d.stored, d.label) }

func TestPlannerWritesOnce(t *testing.T) {
	d := newDesk(t)
	d.want("a")
	d.do()
	for range 3 {
		d.at = d.at.Add(10 * time.Second)
		d.want("a")
		d.do()
		d.show()
	}
	if d.written != 1 || d.label != "a" {
		t.Errorf("written %d times, says %q; want once, a", d.written, d.label)
	}
}

// The source lags behind our own write: the next change is made on top of it,
// and meets no conflict.
func TestPlannerLaggingSource(t *testing.T) {
	d := newDesk(t)
	for i := range 5 {
		d.want(fmt.Sprint(i))
		d.do()
		d.at = d.at.Add(10 * time.Second)
	}
	if d.written != 5 || d.label != "4" {
		t.Errorf("written %d times, says %q; want 5 times, 4", d.written, d.label)
	}
}

// Somebody else writes, and the source does not show it yet: it is tried again,
// with a pause, until the source does.
func TestPlannerConflict(t *testing.T) {
	d := newDesk(t)
	d.stored, d.label = 2, "theirs"
	d.want("a")
	var total time.Duration
	for range 20 {
		wait := d.do()
		if wait == 0 {
			t.Fatal("a conflict is not tried again")
		}
		total += wait
		d.at = d.at.Add(wait)
	}
	if total < 10*time.Second {
		t.Errorf("tried 20 times in %v: that is hot", total)
	}
	d.show()
	d.want("a")
	d.do()
	if d.label != "a" || d.written != 1 {
		t.Errorf("says %q after %d writes, want a after 1", d.label, d.written)
	}
}

// Somebody deletes what we wrote: it is written again.
func TestPlannerRestores(t *testing.T) {
	d := newDesk(t)
	d.want("a")
	d.do()
	d.show()
	d.want("a")
	d.do()
	d.stored++
	d.label = ""
	d.show()
	d.at = d.at.Add(time.Minute)
	d.want("a")
	d.do()
	if d.written != 2 || d.label != "a" {
		t.Errorf("written %d times, says %q; want twice, a", d.written, d.label)
	}
}

// A thousand changes in ten seconds are few writes, the first and the last soon.
func TestPlannerPace(t *testing.T) {
	d := newDesk(t)
	for i := range 1000 {
		d.want(fmt.Sprint(i))
		d.do()
		if i == 0 && d.written != 1 {
			t.Fatal("the first change is not written at once")
		}
		d.at = d.at.Add(10 * time.Millisecond)
	}
	if d.written > 12 {
		t.Errorf("%d writes in a storm of ten seconds, want 12 at most", d.written)
	}
	last := d.at
	for d.label != "999" {
		wait := d.do()
		if wait == 0 && d.label != "999" {
			t.Fatalf("the end says %q", d.label)
		}
		d.at = d.at.Add(wait)
	}
	if late := d.at.Sub(last); late > 900*time.Millisecond {
		t.Errorf("the end is written %v late", late)
	}
	d.at = d.at.Add(time.Minute)
	before := d.written
	d.want("new")
	if d.do(); d.written != before+1 {
		t.Error("after a calm a change is not written at once")
	}
}

// At most so many writes are under way.
func TestPlannerBound(t *testing.T) {
	d := newDesk(t)
	var subjects []subject
	for i := range 10 {
		subjects = append(subjects, subject{
			subjectKey: subjectKey{"HTTPRoute", types.NamespacedName{Name: fmt.Sprint(i)}}, says: i, object: d.shown,
			change: func(client.Object, metav1.Time) write {
				return func(context.Context, client.Client) (client.Object, error) { return nil, nil }
			},
		})
	}
	d.take(&turn{}, subjects)
	first, _ := d.next(4)
	second, _ := d.next(4)
	third, _ := d.next(4)
	fourth, _ := d.next(4)
	if len(first) != 4 || len(second) != 4 || len(third) != 2 || len(fourth) != 0 {
		t.Errorf("%d, %d, %d, %d writes, want 4, 4, 2, 0", len(first), len(second), len(third), len(fourth))
	}
	d.take(&turn{}, nil)
	for _, j := range append(append(first, second...), third...) {
		d.done(outcome{key: j.key, err: errors.New("away")}, func(t time.Duration) time.Duration { return t })
	}
	d.take(&turn{}, nil)
	if len(d.progress) != 0 {
		t.Errorf("%d subjects are remembered that are gone", len(d.progress))
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 10 * time.Second, 1000: 10 * time.Second} {
		if got := backoff(time.Second, 10*time.Second, failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
}
