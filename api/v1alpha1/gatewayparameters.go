package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayParameters change what the clients of Gateways may do, and how the process
// that serves them works. A GatewayClass names them in parametersRef, for all its
// Gateways; a Gateway in infrastructure.parametersRef, for itself, and field by field
// before its class's. What both leave out is as the flags of the process say.
//
// What is said of clients and of the access log counts for sockets: where Gateways
// share an address and a port, those of the oldest Gateway do, then of the first by
// name. A change counts from the next request on.
//
// Workers, pinning and pressure are of the process, and count in the parameters of a
// GatewayClass only: of the oldest one that says something of them, then of the first
// by name. Pressure changes at once, workers and pinning when the process starts the
// next time, which the status of the GatewayClass tells. Where the process logs to is
// a flag only.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=headgate,shortName=gwparams
// +kubebuilder:printcolumn:name="Idle",type=string,JSONPath=`.spec.client.idleTimeout`
// +kubebuilder:printcolumn:name="Header",type=string,JSONPath=`.spec.client.headerTimeout`
// +kubebuilder:printcolumn:name="Body",type=string,JSONPath=`.spec.client.bodyTimeout`
// +kubebuilder:printcolumn:name="Log",type=string,JSONPath=`.spec.accessLog.mode`
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

	// AccessLog says which requests are logged.
	// +optional
	AccessLog *AccessLogParameters `json:"accessLog,omitempty"`

	// Workers is the number of event loops of each process, 1 to 256. It counts in a
	// GatewayClass's parameters only, and from the next start of a process on.
	// Default: --workers, one for each usable CPU.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",message="must be between 1 and 256"
	Workers *int32 `json:"workers,omitempty"`

	// Pinning is PerCPU, which keeps each event loop on a CPU of its own, or Off. It
	// counts as Workers does. Default: --pin, Off.
	// +optional
	Pinning *Pinning `json:"pinning,omitempty"`

	// Pressure bounds what a process takes on. It counts in a GatewayClass's
	// parameters only.
	// +optional
	Pressure *ProcessPressure `json:"pressure,omitempty"`
}

// Pinning says whether event loops stay on a CPU.
//
// +kubebuilder:validation:Enum=PerCPU;Off
type Pinning string

// The ways of pinning.
const (
	// PinningPerCPU keeps each event loop on a CPU of its own.
	PinningPerCPU Pinning = "PerCPU"
	// PinningOff leaves it to the kernel.
	PinningOff Pinning = "Off"
)

// ProcessPressure bounds what a process takes on: at a bound it accepts no
// connection, and those that wait for a request make room.
type ProcessPressure struct {
	// MaxConnections is how many clients may be connected to a process, 1 to
	// 10000000. Default: --max-connections, three quarters of the descriptors that it
	// may open.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000000",message="must be between 1 and 10000000"
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// MemoryLimit is what live memory should stay below, 16Mi to 1024Gi. Default:
	// --memory-limit, else GOMEMLIMIT, else none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('16Mi')) >= 0 && quantity(self).compareTo(quantity('1024Gi')) <= 0",message="must be between 16Mi and 1024Gi"
	MemoryLimit *ByteSize `json:"memoryLimit,omitempty"`
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

	// ProxyProtocol says whether connections begin with a header of the PROXY
	// protocol. A Gateway's own counts as a whole, before its class's. Default: Off.
	// +optional
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol,omitempty"`

	// Limits bound the heads of requests.
	// +optional
	Limits *HeadLimits `json:"limits,omitempty"`
}

// ProxyProtocolMode says whether the PROXY protocol is spoken.
//
// +kubebuilder:validation:Enum=Off;Required
type ProxyProtocolMode string

// The modes of the PROXY protocol.
const (
	// ProxyProtocolOff takes connections as they are.
	ProxyProtocolOff ProxyProtocolMode = "Off"
	// ProxyProtocolRequired closes connections that don't begin with a header.
	ProxyProtocolRequired ProxyProtocolMode = "Required"
)

// ProxyProtocol says whether connections begin with a header of the PROXY protocol,
// version 1 or 2, by which a load balancer that relays TCP names the client. The
// client that it names is the client in forwarded headers, in the access log, for
// trustedCIDRs, and wherever else clients are told apart.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Required' || has(self.from) && size(self.from) > 0",message="must name the load balancers when mode is Required: who may send the header can say to be any client",reason=FieldValueRequired,fieldPath=".from"
type ProxyProtocol struct {
	// Mode is Off or Required. Required closes what does not begin with a header; the
	// protocol forbids to guess whether there is one.
	// +required
	Mode ProxyProtocolMode `json:"mode"`

	// From are the load balancers: the connections of others are closed. At least one
	// when mode is Required.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	From []CIDR `json:"from,omitempty"`
}

// HeadLimits bound the heads of requests, those of HTTP/1 and of HTTP/2 alike.
type HeadLimits struct {
	// RequestLineBytes bounds a request line, and with HTTP/2 a target, 256 to
	// 1048576 bytes; more is answered 414. Default: --max-request-line, 8192.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 256 && self <= 1048576",message="must be between 256 and 1048576"
	RequestLineBytes *int32 `json:"requestLineBytes,omitempty"`

	// HeaderBytes bounds all fields of a head together, 1024 to 1048576 bytes; more
	// is answered 431. Default: --max-header-bytes, 65536.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1024 && self <= 1048576",message="must be between 1024 and 1048576"
	HeaderBytes *int32 `json:"headerBytes,omitempty"`

	// HeaderCount bounds the number of fields, 8 to 10000; more are answered 431.
	// Default: --max-headers, 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 8 && self <= 10000",message="must be between 8 and 10000"
	HeaderCount *int32 `json:"headerCount,omitempty"`
}

// AccessLogMode says which requests are logged.
//
// +kubebuilder:validation:Enum=All;Errors;Off
type AccessLogMode string

// The modes of an access log.
const (
	// AccessLogAll logs each request, or a share of them.
	AccessLogAll AccessLogMode = "All"
	// AccessLogErrors logs those that were answered with 400 or above, and those
	// whose answer is not complete.
	AccessLogErrors AccessLogMode = "Errors"
	// AccessLogOff logs none.
	AccessLogOff AccessLogMode = "Off"
)

// AccessLogParameters say which requests are logged. Where they are logged to is
// one for the process, --access-log; with --access-log off nothing is logged.
type AccessLogParameters struct {
	// Mode is All, Errors (answered with 400 or above, or not completely) or Off.
	// Default: All.
	// +optional
	Mode *AccessLogMode `json:"mode,omitempty"`

	// SamplePercent is the share of the requests that are no errors which mode All
	// logs, 1 to 100; errors are all logged. Default: 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="must be between 1 and 100"
	SamplePercent *int32 `json:"samplePercent,omitempty"`
}

// CIDR is a prefix of addresses, such as 10.0.0.0/8 or fd00::/8.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a prefix such as 10.0.0.0/8"
type CIDR string
