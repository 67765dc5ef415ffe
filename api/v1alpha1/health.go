package v1alpha1

// Health takes endpoints out that fail.
type Health struct {
	// Check asks each endpoint from time to time. Default: no checks.
	// +optional
	Check *HealthCheck `json:"check,omitempty"`

	// Ejection takes endpoints out that fail requests in a row.
	// +optional
	Ejection *Ejection `json:"ejection,omitempty"`
}

// HealthCheck is a GET request to each endpoint.
type HealthCheck struct {
	// Path of the request, with a leading slash.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[!-~]*$')",message="must begin with a slash and have no blank or control character"
	Path string `json:"path"`

	// Host of the request. Default: the endpoint's address.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-.0-~]+$')",message="must be the value of a Host field"
	Host *string `json:"host,omitempty"`

	// Interval between two checks, 100ms to 1h. Default: 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="must be between 100ms and 1h"
	Interval *Duration `json:"interval,omitempty"`

	// Timeout of a check, 1ms to 10m. Default: 2s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="must be between 1ms and 10m"
	Timeout *Duration `json:"timeout,omitempty"`

	// Unhealthy is how many failures in a row take an endpoint out, 1 to 100.
	// Default: 3.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="must be between 1 and 100"
	Unhealthy *int32 `json:"unhealthy,omitempty"`

	// Healthy is how many successes in a row bring it back, 1 to 100. Default: 2.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="must be between 1 and 100"
	Healthy *int32 `json:"healthy,omitempty"`

	// Statuses are those that are successes. Default: 200 to 399.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Statuses []StatusRange `json:"statuses,omitempty"`
}

// StatusRange is a range of HTTP statuses, both ends included.
//
// +kubebuilder:validation:XValidation:rule="self.first >= 100 && self.first <= self.last && self.last <= 599",message="must be a range within 100 and 599, first not above last"
type StatusRange struct {
	// First status.
	First int32 `json:"first"`
	// Last status.
	Last int32 `json:"last"`
}

// Ejection is passive: a failure is a connection that does not come about or breaks
// before the response's head, or a deadline that passes.
type Ejection struct {
	// Mode is Enforce (the default) or Off.
	// +optional
	Mode *Switch `json:"mode,omitempty"`

	// Failures in a row eject, 1 to 1000. Default: 5.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="must be between 1 and 1000"
	Failures *int32 `json:"failures,omitempty"`

	// ServerErrors makes the statuses 502, 503 and 504 failures, too. Default: false.
	// +optional
	ServerErrors bool `json:"serverErrors,omitempty"`

	// Period of the first ejection, 100ms to 24h; each one in a row is twice as long.
	// Default: 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	Period *Duration `json:"period,omitempty"`

	// MaxPeriod bounds that, 100ms to 24h. Default: 5m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	MaxPeriod *Duration `json:"maxPeriod,omitempty"`

	// MaxPercent of the endpoints that are out at once, 1 to 100. Default: 50.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="must be between 1 and 100"
	MaxPercent *int32 `json:"maxPercent,omitempty"`
}

// RetryBudget bounds how many requests are tried again, so that a failing Service does
// not get more work than a working one.
type RetryBudget struct {
	// Mode is Enforce (the default) or Off: then nothing is tried again.
	// +optional
	Mode *Switch `json:"mode,omitempty"`

	// Percent of the requests that may be tried again, 1 to 1000. Default: 20.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="must be between 1 and 1000"
	Percent *int32 `json:"percent,omitempty"`

	// MinPerSecond may be tried again on each node whatever the load, 1 to 10000.
	// Default: 10.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="must be between 1 and 10000"
	MinPerSecond *int32 `json:"minPerSecond,omitempty"`
}
