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

const (
	// mostMessage is the CRD's limit.
	mostMessage = 32768
	// mostMessages bounds all of them together: the API server takes no object of
	// more than 1.5 MB, and one that can't be written says of every Gateway that
	// it was not applied.
	mostMessages = 256 << 10
	// noMessage stands for one that there was no place for.
	noMessage = "not served as it should be; the log of this node says why"
)

// Observation is what the control plane knows after a turn of its loop. It is
// immutable.
type Observation struct {
	// Hash names the snapshot, and Applied is when the data plane took it.
	Hash    string
	Applied time.Time
	// Refused says why the latest snapshot was not taken.
	Refused error
	// Restart says what the process must be restarted for; empty for nothing.
	Restart string
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
		Version: r.o.Version, Started: second(r.o.Started), Restart: o.Restart,
		Snapshot: v1alpha1.SnapshotStatus{Hash: o.Hash, Applied: second(o.Applied)},
	}
	if o.Refused != nil {
		s.Snapshot.Message = cut(o.Refused.Error())
	}
	room := mostMessages
	for _, g := range o.Gateways {
		if len(s.Gateways) == v1alpha1.MaxGatewaysOnNode {
			break
		}
		on := v1alpha1.GatewayOnNode{Namespace: g.Namespace, Name: g.Name, Generation: g.Generation}
		for _, f := range g.Faults() {
			message := cut(f.Message)
			if room -= len(message); room < 0 {
				message = noMessage
			}
			on.Listeners = append(on.Listeners, v1alpha1.ListenerOnNode{Name: f.Name, Served: f.Served, Reason: f.Reason, Message: message})
			s.Faults++
		}
		s.Gateways = append(s.Gateways, on)
	}
	var have v1alpha1.DataPlaneStatus
	if r.have != nil {
		have = r.have.Status
	}
	r.meter.fill(s, &have)
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
