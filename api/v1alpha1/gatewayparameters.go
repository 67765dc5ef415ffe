package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayParameters change what the clients of Gateways may do. A GatewayClass
// names them in parametersRef, for all its Gateways; a Gateway in
// infrastructure.parametersRef, for itself, and field by field before its class's.
// What both leave out is as the flags of the process say. What can't be changed
// while a process runs (workers, pinning, logs) is a flag only.
//
// They count for sockets: where Gateways share an address and a port, those of the
// oldest Gateway do, then of the first by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=headgate,shortName=gwparams
// +kubebuilder:printcolumn:name="Idle",type=string,JSONPath=`.spec.client.idleTimeout`
// +kubebuilder:printcolumn:name="Header",type=string,JSONPath=`.spec.client.headerTimeout`
// +kubebuilder:printcolumn:name="Body",type=string,JSONPath=`.spec.client.bodyTimeout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayParameters struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec GatewayParametersSpec `json:"spec"`
}

// GatewayParametersList is a list of GatewayParameters.
//
// +kubebuilder:object:root=true
type GatewayParametersList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayParameters `json:"items"`
}

// GatewayParametersSpec is what GatewayParameters ask for.
type GatewayParametersSpec struct {
	// Client bounds what clients may do.
	// +optional
	Client *ClientParameters `json:"client,omitempty"`
}

// ClientParameters bound what clients may keep the gateway waiting for, and say
// whom of them to trust.
type ClientParameters struct {
	// HeaderTimeout is the time from a request's first byte to the end of its head,
	// 100ms to 10m; then 408. Default: --header-timeout, 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('10m')",message="must be between 100ms and 10m"
	HeaderTimeout *Duration `json:"headerTimeout,omitempty"`

	// IdleTimeout is how long a connection may be without a request, 100ms to 24h.
	// Default: --idle-timeout, 75s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	IdleTimeout *Duration `json:"idleTimeout,omitempty"`

	// BodyTimeout is how long a request's body may make no progress, 100ms to 24h;
	// then 408. Default: --body-timeout, 60s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	BodyTimeout *Duration `json:"bodyTimeout,omitempty"`

	// WriteTimeout is how long a client may take nothing of a response that waits for
	// it, 1s to 24h. Default: 5m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	WriteTimeout *Duration `json:"writeTimeout,omitempty"`

	// MaxRequests is how many requests one connection may carry, 1 to 1000000000.
	// Default: --max-requests, no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="must be between 1 and 1000000000"
	MaxRequests *int32 `json:"maxRequests,omitempty"`

	// TrustedCIDRs are the peers whose forwarded headers are kept, in the place of
	// --trusted-cidr; an empty list trusts nobody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	TrustedCIDRs *[]CIDR `json:"trustedCIDRs,omitempty"`
}

// CIDR is a prefix of addresses, such as 10.0.0.0/8 or fd00::/8.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a prefix such as 10.0.0.0/8"
type CIDR string
