package node

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// mostGateways and mostMessage are the CRD's limits.
const (
	mostGateways = 4096
	mostMessage  = 32768
)

// Observation is what the control plane knows after a turn of its loop. It is
// immutable.
type Observation struct {
	// Hash names the snapshot, and Applied is when the data plane took it.
	Hash    string
	Applied time.Time
	// Refused says why the latest snapshot was not taken.
	Refused error
	// Gateways are those of the report, as they are on this node.
	Gateways []*compile.GatewayReport
	// Object is the DataPlane object as it was seen last, or nil.
	Object *v1alpha1.DataPlane
	// NodeUID is the Node's, empty when it is not known.
	NodeUID types.UID
}

// status returns what the object should say.
func (r *Reporter) status(o *Observation) *v1alpha1.DataPlaneStatus {
	s := &v1alpha1.DataPlaneStatus{
		ControllerName: gatewayv1.GatewayController(r.o.ControllerName), NodeName: r.o.NodeName,
		Version: r.o.Version, Started: second(r.o.Started),
		Snapshot: v1alpha1.SnapshotStatus{Hash: o.Hash, Applied: second(o.Applied)},
	}
	if o.Refused != nil {
		s.Snapshot.Message = cut(o.Refused.Error())
	}
	for _, g := range o.Gateways {
		if len(s.Gateways) == mostGateways {
			break
		}
		on := v1alpha1.GatewayOnNode{Namespace: g.Namespace, Name: g.Name, Generation: g.Generation}
		for _, f := range g.Faults() {
			on.Listeners = append(on.Listeners, v1alpha1.ListenerOnNode{Name: f.Name, Served: f.Served, Reason: f.Reason, Message: cut(f.Message)})
			s.Faults++
		}
		s.Gateways = append(s.Gateways, on)
	}
	r.meter.fill(s)
	return s
}

// second returns a time as objects have it.
func second(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

func cut(text string) string {
	if len(text) > mostMessage {
		return strings.ToValidUTF8(text[:mostMessage-3], "") + "..."
	}
	return text
}
