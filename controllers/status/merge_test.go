package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var (
	then = metav1.NewTime(time.Unix(1000, 0))
	now  = metav1.NewTime(time.Unix(2000, 0))
)

func cond(kind, status string, at metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "R", LastTransitionTime: at}
}

func TestMerged(t *testing.T) {
	own := []string{"Accepted", "Programmed"}
	for name, c := range map[string]struct {
		have, want, merged []metav1.Condition
	}{
		"nothing there": {
			nil, []metav1.Condition{cond("Accepted", "True", metav1.Time{})},
			[]metav1.Condition{cond("Accepted", "True", now)},
		},
		"same status keeps its time": {
			[]metav1.Condition{cond("Accepted", "True", then)}, []metav1.Condition{cond("Accepted", "True", metav1.Time{})},
			[]metav1.Condition{cond("Accepted", "True", then)},
		},
		"other status": {
			[]metav1.Condition{cond("Accepted", "Unknown", then)}, []metav1.Condition{cond("Accepted", "True", metav1.Time{})},
			[]metav1.Condition{cond("Accepted", "True", now)},
		},
		"foreign ones stay in their place": {
			[]metav1.Condition{cond("A", "True", then), cond("Accepted", "True", then), cond("B", "False", then)},
			[]metav1.Condition{cond("Accepted", "False", metav1.Time{})},
			[]metav1.Condition{cond("A", "True", then), cond("Accepted", "False", now), cond("B", "False", then)},
		},
		"own ones that hold no more go": {
			[]metav1.Condition{cond("Programmed", "True", then), cond("Accepted", "True", then)},
			[]metav1.Condition{cond("Accepted", "True", metav1.Time{})},
			[]metav1.Condition{cond("Accepted", "True", then)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.merged, merged(c.have, c.want, own, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongMessage(t *testing.T) {
	c := metav1.Condition{Type: "Accepted", Message: strings.Repeat("ä", 40000)}
	if got := []rune(merged(nil, []metav1.Condition{c}, nil, now)[0].Message); len(got) != mostMessage {
		t.Errorf("a message of %d characters, the API takes %d", len(got), mostMessage)
	}
	c.Message = strings.Repeat("ä", 30000) // more bytes than the limit, fewer characters
	if got := merged(nil, []metav1.Condition{c}, nil, now)[0].Message; got != c.Message {
		t.Errorf("a message of 30000 characters was cut to %d", len([]rune(got)))
	}
}

func TestNewer(t *testing.T) {
	cs := []metav1.Condition{{Type: "Accepted", ObservedGeneration: 3}, {Type: "Foreign", ObservedGeneration: 9}}
	if newer(cs, []string{"Accepted"}, 3) || !newer(cs, []string{"Accepted"}, 2) {
		t.Error("newer compares with the generation of our own conditions only")
	}
}

func TestMergedListeners(t *testing.T) {
	have := []gatewayv1.ListenerStatus{
		{Name: "gone"},
		{Name: "a", AttachedRoutes: 1, Conditions: []metav1.Condition{cond("Theirs", "True", then), cond("Accepted", "True", then), cond("Conflicted", "True", then)}},
	}
	want := []gatewayv1.ListenerStatus{
		{Name: "a", AttachedRoutes: 2, Conditions: []metav1.Condition{cond("Accepted", "True", metav1.Time{})}},
		{Name: "b", Conditions: []metav1.Condition{cond("Accepted", "False", metav1.Time{})}},
	}
	diff := cmp.Diff([]gatewayv1.ListenerStatus{
		{Name: "a", AttachedRoutes: 2, Conditions: []metav1.Condition{cond("Theirs", "True", then), cond("Accepted", "True", then)}},
		{Name: "b", Conditions: []metav1.Condition{cond("Accepted", "False", now)}},
	}, mergedListeners(have, want, now))
	if diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMergedParents(t *testing.T) {
	const us, them = "example.com/us", "example.com/them"
	entry := func(controller gatewayv1.GatewayController, gateway string, cs ...metav1.Condition) gatewayv1.RouteParentStatus {
		if cs == nil {
			cs = []metav1.Condition{}
		}
		return gatewayv1.RouteParentStatus{ControllerName: controller, ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(gateway)}, Conditions: cs}
	}
	have := []gatewayv1.RouteParentStatus{
		entry(us, "stale"), entry(them, "a"), entry(us, "a", cond("Accepted", "True", then)), entry(us, "a"), entry(them, "b"),
	}
	want := []gatewayv1.RouteParentStatus{entry(us, "new", cond("Accepted", "True", metav1.Time{})), entry(us, "a", cond("Accepted", "True", metav1.Time{}))}
	got := mergedParents(have, want, us, now)
	diff := cmp.Diff([]gatewayv1.RouteParentStatus{
		entry(them, "a"), entry(us, "a", cond("Accepted", "True", then)), entry(them, "b"), entry(us, "new", cond("Accepted", "True", now)),
	}, got)
	if diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := mergedParents(got, want, us, now); !cmp.Equal(got, again) {
		t.Errorf("not stable: %v", again)
	}
}

func TestServiceName(t *testing.T) {
	long := strings.Repeat("a", 253)
	names := []string{"gw", "a.b", "a-b", long, long[1:] + "b", strings.Repeat("x", 40) + "-." + strings.Repeat("y", 40)}
	seen := make(map[string]bool)
	for _, n := range names {
		s := serviceName(n)
		if len(s) > mostName || seen[s] || strings.Trim(s, "-") != s || strings.ContainsAny(s, "._") {
			t.Errorf("Gateway %q has Service %q", n, s)
		}
		seen[s] = true
		if l := labelValue(n); len(l) > mostName {
			t.Errorf("Gateway %q has label %q", n, l)
		}
	}
}
