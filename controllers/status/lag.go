package status

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/controllers/compile"
)

// lagMost is how long a Gateway's status waits for the other data planes to apply
// its generation. They do within moments; one that does not is named then. Until
// then the status goes on saying what held of the generation before.
const lagMost = 10 * time.Second

// lag is a Gateway that not all data planes have applied.
type lag struct {
	generation int64
	since      time.Time
}

// across returns the report as it holds on all nodes. Gateways that say the same as
// in the last one are the same pointers.
func (k *Kube) across(local *compile.Report, in *compile.Input) *compile.Report {
	r := local.Across(k.o.DataPlane, k.o.ControllerName, in.DataPlanes, in.Nodes)
	told := make(map[types.NamespacedName]*compile.GatewayReport, len(r.Gateways))
	for i, g := range r.Gateways {
		if was := k.told[g.NamespacedName]; was != nil && was != g && r != local && reflect.DeepEqual(was, g) {
			r.Gateways[i] = was
		}
		told[g.NamespacedName] = r.Gateways[i]
	}
	k.told = told
	return r
}

// held returns until when the status of Gateways is kept back, since other data
// planes are behind.
func (k *Kube) held(r *compile.Report) map[types.NamespacedName]time.Time {
	var held map[types.NamespacedName]time.Time
	behind := make(map[types.NamespacedName]lag)
	for _, g := range r.Gateways {
		if len(g.Behind()) == 0 {
			continue
		}
		l, known := k.behind[g.NamespacedName]
		if !known || l.generation != g.Generation {
			l = lag{g.Generation, k.o.Now()}
		}
		behind[g.NamespacedName] = l
		if held == nil {
			held = make(map[types.NamespacedName]time.Time)
		}
		held[g.NamespacedName] = l.since.Add(lagMost)
	}
	k.behind = behind
	return held
}
