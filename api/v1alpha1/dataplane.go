package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// DataPlane is what the data plane of one node says of itself. Each process of
// Headgate writes its own, under the name of its Node, and removes it when it
// ends; it goes with the Node. Nobody else writes it, and it asks for nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=headgate,shortName=dp
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Snapshot",type=string,JSONPath=`.status.snapshot.hash`
// +kubebuilder:printcolumn:name="Applied",type=date,JSONPath=`.status.snapshot.applied`
// +kubebuilder:printcolumn:name="Connections",type=integer,JSONPath=`.status.connections`
// +kubebuilder:printcolumn:name="Busy %",type=integer,JSONPath=`.status.busyPercent`
// +kubebuilder:printcolumn:name="Faults",type=integer,JSONPath=`.status.faults`
// +kubebuilder:printcolumn:name="Troubled",type=integer,JSONPath=`.status.troubled`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.started`
// +kubebuilder:printcolumn:name="Worst",type=string,priority=1,JSONPath=`.status.worst`
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Controller",type=string,priority=1,JSONPath=`.status.controllerName`
type DataPlane struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status is what the data plane says.
	// +optional
	Status DataPlaneStatus `json:"status,omitempty"`
}

// DataPlaneList is a list of DataPlanes.
//
// +kubebuilder:object:root=true
type DataPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataPlane `json:"items"`
}

// MaxGatewaysOnNode is how many Gateways a DataPlane's status has at most: the first
// ones, by namespace and name.
const MaxGatewaysOnNode = 4096

// DataPlaneStatus is what a data plane says of itself.
type DataPlaneStatus struct {
	// ControllerName is the controllerName of the GatewayClasses that it serves.
	// +optional
	ControllerName gatewayv1.GatewayController `json:"controllerName,omitempty"`
	// NodeName is the Node that it runs on; empty outside of a cluster.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Version is the version of the program.
	// +optional
	Version string `json:"version,omitempty"`
	// Started is when the process began.
	// +optional
	Started metav1.Time `json:"started,omitempty"`

	// Snapshot is what it serves.
	// +optional
	Snapshot SnapshotStatus `json:"snapshot,omitempty"`
	// Restart says what of the GatewayClass's parameters it does not run with and
	// would if it were started again; empty when there is nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Restart string `json:"restart,omitempty"`
	// Gateways are the Gateways that it has taken into account, sorted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Gateways []GatewayOnNode `json:"gateways,omitempty"`
	// Faults is how many listeners are not served as they should be.
	// +optional
	Faults int32 `json:"faults"`

	// Connections is the number of client connections.
	// +optional
	Connections int64 `json:"connections"`
	// BusyPercent is the share of time in which the loops were busy, in percent of
	// all loops together.
	// +optional
	BusyPercent int32 `json:"busyPercent"`
	// Loops are the event loops.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Loops []LoopStatus `json:"loops,omitempty"`

	// Troubled is how many clusters are not calm.
	// +optional
	Troubled int32 `json:"troubled"`
	// Worst is the one of them that is worst off, and its figures.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Worst string `json:"worst,omitempty"`
	// Clusters are those that are not calm, the worst 128 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Clusters []ClusterOnNode `json:"clusters,omitempty"`
}

// SnapshotStatus is the configuration that is served.
type SnapshotStatus struct {
	// Hash names it: nodes with the same hash serve the same.
	// +optional
	Hash string `json:"hash,omitempty"`
	// Applied is when it was taken.
	// +optional
	Applied metav1.Time `json:"applied,omitempty"`
	// Message says why the latest configuration was refused as a whole; the one
	// before is served then.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// GatewayOnNode is a Gateway as this node serves it.
type GatewayOnNode struct {
	// Namespace of the Gateway.
	Namespace string `json:"namespace"`
	// Name of the Gateway.
	Name string `json:"name"`
	// Generation is the one that the node has applied.
	Generation int64 `json:"generation"`
	// Listeners are those that the node does not serve as they should be; there is
	// none when all is well.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Listeners []ListenerOnNode `json:"listeners,omitempty"`
}

// ListenerOnNode is a listener that a node does not serve as it should be.
type ListenerOnNode struct {
	// Name of the listener.
	Name gatewayv1.SectionName `json:"name"`
	// Served tells whether it is served on some of its addresses.
	Served bool `json:"served"`
	// Reason is that of the listener's condition.
	Reason string `json:"reason"`
	// Message says what is wrong and what to do.
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
}

// LoopStatus is one event loop.
type LoopStatus struct {
	// Index of the loop, from 0.
	Index int32 `json:"index"`
	// Connections are those of clients and of backends.
	Connections int64 `json:"connections"`
	// BusyPercent is the share of time in which it was busy.
	BusyPercent int32 `json:"busyPercent"`
}

// PressureState says how a cluster's pool is.
//
// +kubebuilder:validation:Enum=Calm;Pacing;Holding;Shedding
type PressureState string

// The states, from the calmest one on.
const (
	// PressureCalm is below the threshold.
	PressureCalm PressureState = "Calm"
	// PressurePacing is above it: places are given out at the rate of the model.
	PressurePacing PressureState = "Pacing"
	// PressureHolding is when requests are held.
	PressureHolding PressureState = "Holding"
	// PressureShedding is when requests are answered 503.
	PressureShedding PressureState = "Shedding"
)

// ClusterOnNode is an upstream, a port of a Service, that is not calm on a node: its
// pool is full or nearly so, or not all of its endpoints take requests.
type ClusterOnNode struct {
	// Name is "namespace/service:port".
	Name string `json:"name"`
	// State is the worst one of the last seconds.
	State PressureState `json:"state"`
	// Since is when the cluster ceased to be calm.
	Since metav1.Time `json:"since"`
	// Active are the requests under way, of at most Size.
	Active int64 `json:"active"`
	// Size is the pool's.
	Size int64 `json:"size"`
	// Held are the requests that wait for a place.
	// +optional
	Held int64 `json:"held,omitempty"`
	// Endpoints are those that are ready, the next two included.
	Endpoints int32 `json:"endpoints"`
	// Ejected are those that failed requests.
	// +optional
	Ejected int32 `json:"ejected,omitempty"`
	// Unwell are those that failed their checks.
	// +optional
	Unwell int32 `json:"unwell,omitempty"`
	// ServiceMillis is the mean time that a request keeps its place, in
	// milliseconds; 0 when it is not known.
	// +optional
	ServiceMillis int64 `json:"serviceMillis,omitempty"`
	// EstimateMillis is what the adaptive timeout takes an answer to need, T of Eq. 13
	// of the paper, in milliseconds; 0 when it is off.
	// +optional
	EstimateMillis int64 `json:"estimateMillis,omitempty"`
	// DeadlineMillis is the adaptive timeout, in milliseconds; 0 when there is none.
	// +optional
	DeadlineMillis int64 `json:"deadlineMillis,omitempty"`
	// RequestsPerSecond is how many requests got a place or were shed in the last
	// ten seconds, per second, rounded to two digits.
	// +optional
	RequestsPerSecond int64 `json:"requestsPerSecond,omitempty"`
	// ShedPercent of them were answered 503 for want of a place. It is rounded, but
	// 0 and 100 mean none and all.
	// +optional
	ShedPercent int32 `json:"shedPercent,omitempty"`
	// P50Millis is the median time from the written request to the head of its
	// answer in the last ten seconds, in milliseconds: an eighth off at most, and
	// rounded to two digits; 0 when no answer came.
	// +optional
	P50Millis int64 `json:"p50Millis,omitempty"`
	// P99Millis is the same of the slowest in a hundred.
	// +optional
	P99Millis int64 `json:"p99Millis,omitempty"`
	// Out are the endpoints that get no requests, the first 8 of them by address.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Out []EndpointOnNode `json:"out,omitempty"`
}

// Figures says in a few words how busy the pool is and what becomes of requests.
func (c *ClusterOnNode) Figures() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d", c.Active, c.Size)
	if c.ShedPercent > 0 {
		fmt.Fprintf(&b, ", %d %% shed", c.ShedPercent)
	}
	if c.P99Millis > 0 {
		fmt.Fprintf(&b, ", p99 %d ms", c.P99Millis)
	}
	return b.String()
}

// MaxOut is how many endpoints Out has at most.
const MaxOut = 8

// CountOut returns how many endpoints get no requests. One may be ejected and have
// failed its checks as well.
func (c *ClusterOnNode) CountOut() int32 {
	if n := len(c.Out); n > 0 && n < MaxOut {
		return int32(n)
	}
	return min(c.Ejected+c.Unwell, c.Endpoints)
}

// EndpointOnNode is an endpoint that gets no requests from a node.
type EndpointOnNode struct {
	// Address is "address:port".
	Address string `json:"address"`
	// Until is when it gets requests again; absent when that is up to its checks.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Message says why.
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
}
