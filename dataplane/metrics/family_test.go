package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of docs/metrics.md")

const document = "../../docs/metrics.md"

// What is documented is what is collected: every family is described, sent with
// its type and labels, and has its row in docs/metrics.md.
func TestFamiliesAreCollected(t *testing.T) {
	m := newMetrics(t, Options{
		Reactor:   func(int) ReactorStats { return ReactorStats{} },
		Accepts:   func() (uint64, uint64) { return 0, 0 },
		Handover:  func() HandoverStats { return HandoverStats{} },
		AccessLog: func() (uint64, uint64) { return 0, 0 },
		Guard:     func() GuardStats { return GuardStats{} },
		Stages:    func() []StageStats { return []StageStats{{Stage: "S1"}} },
	})
	m.Route("a/b").Observe(0, 200, 0)
	c := m.Cluster("a/b:80")
	c.Show(func() ClusterLive { return ClusterLive{Timed: true} })
	c.Loop(0).Propagated(0)
	m.Loop(0).ClientError("x")
	m.Loop(0).LocalReply("x")
	m.Loop(0).ProxyRefused("x")
	gathered, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]Family)
	for _, f := range gathered {
		if !strings.HasPrefix(f.GetName(), "headgate_") {
			continue
		}
		s := f.GetMetric()[0]
		labels := make(map[string]bool)
		for _, l := range s.GetLabel() {
			labels[l.GetName()] = true
		}
		var in []string // in the order of the description, when it names just these
		for _, d := range families {
			if d.Name == f.GetName() && len(d.Labels) == len(labels) {
				for _, l := range d.Labels {
					if labels[l] {
						in = append(in, l)
					}
				}
			}
		}
		got[f.GetName()] = Family{f.GetName(), strings.ToLower(f.GetType().String()), in, f.GetHelp()}
	}
	want := make(map[string]Family)
	for _, f := range Families() {
		want[f.Name] = f
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-described +collected):\n%s", diff)
	}
}

func TestFamiliesAreDocumented(t *testing.T) {
	const begin, end = "<!-- families: written by the test of dataplane/metrics with -update -->\n", "<!-- end -->\n"
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its table", document)
	}
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range Families() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), f.Help)
	}
	if table == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s (-documented +real), run with -update:\n%s", document, cmp.Diff(table, b.String()))
	}
	if err := os.WriteFile(document, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
