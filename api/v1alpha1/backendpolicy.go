package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// BackendPolicy says how Headgate treats the Services that it names, as
// backends: a direct policy (GEP-713). It counts for every route that sends
// requests to them. What it leaves out is as the flags of the process say.
//
// When several name one Service, the oldest counts as a whole, then the first by
// name; the others say Conflicted. One that names a port of a Service counts for
// that port in the place of one that names the whole Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=gateway-api;headgate,shortName=bpol
// +kubebuilder:metadata:labels={"gateway.networking.k8s.io/policy=Direct"}
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Pool",type=integer,JSONPath=`.spec.pool.size`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.since`
// +kubebuilder:printcolumn:name="Busiest",type=string,JSONPath=`.status.busiest`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BackendPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec BackendPolicySpec `json:"spec"`
	// Status is what became of it.
	// +optional
	Status BackendPolicyStatus `json:"status,omitempty"`
}

// BackendPolicyList is a list of BackendPolicies.
//
// +kubebuilder:object:root=true
type BackendPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackendPolicy `json:"items"`
}

// BackendPolicySpec is what a BackendPolicy asks for.
type BackendPolicySpec struct {
	// TargetRefs are the Services, in the policy's namespace. With a sectionName
	// it is the port of that name only.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == '' && t.kind == 'Service')",message="must name Services: group \"\" and kind Service"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name && (has(a.sectionName) ? a.sectionName : '') == (has(b.sectionName) ? b.sectionName : '')))",message="must not name the same Service, or the same port of it, twice"
	TargetRefs []gatewayv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`

	// Pool bounds what is under way at each port of the Services.
	// +optional
	Pool *Pool `json:"pool,omitempty"`

	// Balancing says which endpoint gets the next request.
	// +optional
	Balancing *Balancing `json:"balancing,omitempty"`

	// AdaptiveTimeout is the deadline that follows the response time.
	// +optional
	AdaptiveTimeout *AdaptiveTimeout `json:"adaptiveTimeout,omitempty"`

	// Pressure is what happens when the pool fills up.
	// +optional
	Pressure *Pressure `json:"pressure,omitempty"`

	// Health takes endpoints out that fail.
	// +optional
	Health *Health `json:"health,omitempty"`

	// RetryBudget bounds how many requests are tried again.
	// +optional
	RetryBudget *RetryBudget `json:"retryBudget,omitempty"`
}

// Pool bounds what is under way at a Service port, on each node.
type Pool struct {
	// Size is the most requests that are under way at once, 1 to 1000000.
	// Default: --pool-size, 1024.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",message="must be between 1 and 1000000"
	Size *int32 `json:"size,omitempty"`

	// Waiting is the most requests that wait for a place, 0 to 1000000; one more
	// is answered 503. Default: --pool-waiting, else size, at least 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1000000",message="must be between 0 and 1000000"
	Waiting *int32 `json:"waiting,omitempty"`

	// WaitTimeout is how long one waits before it is answered 503, 1ms to 10m.
	// Default: --pool-wait-timeout, 5s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="must be between 1ms and 10m"
	WaitTimeout *Duration `json:"waitTimeout,omitempty"`

	// ConnectTimeout bounds the setup of a connection, 1ms to 10m. Default:
	// --connect-timeout, 5s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="must be between 1ms and 10m"
	ConnectTimeout *Duration `json:"connectTimeout,omitempty"`

	// ResponseTimeout bounds the time from the written request to the head of its
	// response, 1ms to 24h; 0s turns it off. Timeouts of a route win. Default:
	// --response-timeout, 60s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('24h')",message="must be 0s, which turns it off, or between 1ms and 24h"
	ResponseTimeout *Duration `json:"responseTimeout,omitempty"`

	// IdleTimeout is how long an unused connection is kept, 1ms to 24h. Default:
	// --upstream-idle-timeout, 60s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('24h')",message="must be between 1ms and 24h"
	IdleTimeout *Duration `json:"idleTimeout,omitempty"`

	// MaxAge is the age from which a connection is not used again, 1s to 720h.
	// Default: none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="must be between 1s and 720h"
	MaxAge *Duration `json:"maxAge,omitempty"`

	// Warm is how many unused connections each event loop opens to an endpoint that
	// joins, 0 to 1000. Default: 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1000",message="must be between 0 and 1000"
	Warm *int32 `json:"warm,omitempty"`
}

// BalancingType names a way to pick an endpoint.
//
// +kubebuilder:validation:Enum=LeastRequest;RoundRobin;PeakEWMA;ConsistentHash
type BalancingType string

// The ways to pick an endpoint.
const (
	// BalancingLeastRequest takes the less busy one of two that are drawn.
	BalancingLeastRequest BalancingType = "LeastRequest"
	// BalancingRoundRobin takes one after the other.
	BalancingRoundRobin BalancingType = "RoundRobin"
	// BalancingPeakEWMA takes the one of two that are drawn that promises the
	// shorter wait.
	BalancingPeakEWMA BalancingType = "PeakEWMA"
	// BalancingConsistentHash sends equal keys to the same endpoint.
	BalancingConsistentHash BalancingType = "ConsistentHash"
)

// Balancing says which endpoint gets the next request.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hashOn) || self.type == 'ConsistentHash'",message="hashOn goes with type ConsistentHash only"
type Balancing struct {
	// Type is LeastRequest (the default without a policy: the less busy one of two
	// that are drawn), RoundRobin (one after the other), PeakEWMA (the one of two
	// that are drawn that promises the shorter wait) or ConsistentHash (equal keys go
	// to the same endpoint).
	// +required
	Type BalancingType `json:"type"`

	// HashOn is the key of ConsistentHash. Default: the client's address.
	// +optional
	HashOn *HashOn `json:"hashOn,omitempty"`

	// SlowStart is how long an endpoint that joins takes to get its full share, 1ms
	// to 1h. Default: none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be between 1ms and 1h"
	SlowStart *Duration `json:"slowStart,omitempty"`
}

// HashKey names what a hash is made of.
//
// +kubebuilder:validation:Enum=ClientIP;Header;Cookie
type HashKey string

// The keys of a hash.
const (
	HashClientIP HashKey = "ClientIP"
	HashHeader   HashKey = "Header"
	HashCookie   HashKey = "Cookie"
)

// HashOn is the key of a consistent hash. A request without it goes where
// LeastRequest would send it.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'ClientIP') == !has(self.name)",message="name must be set for Header and Cookie, and for nothing else"
type HashOn struct {
	// Type is ClientIP, Header or Cookie.
	// +required
	Type HashKey `json:"type"`
	// Name of the header or cookie.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9!#$%&\\x27*+.^_`|~-]+$')",message="must be the name of a header or a cookie"
	Name *string `json:"name,omitempty"`
}

// BackendPolicyStatus is what became of a BackendPolicy.
type BackendPolicyStatus struct {
	// The ancestors are the targets, each with the condition Accepted.
	gatewayv1.PolicyStatus `json:",inline"`

	// State is that of the targets' pools, the worst one of all nodes. It is absent
	// where no data plane tells.
	// +optional
	State PressureState `json:"state,omitempty"`
	// Since is when that pool ceased to be calm; absent while all are.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Busiest says which cluster that is, where, how busy its pool is, and what
	// becomes of requests; absent while all are calm.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Busiest string `json:"busiest,omitempty"`
}
