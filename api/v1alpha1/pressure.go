package v1alpha1

// Mode says what is done with something that Headgate finds out.
//
// +kubebuilder:validation:Enum=Enforce;Observe;Off
type Mode string

// Switch turns something on or off.
//
// +kubebuilder:validation:Enum=Enforce;Off
type Switch string

// The modes; a Switch has no Observe.
const (
	ModeEnforce Mode = "Enforce"
	// ModeObserve shows what would be done, and does nothing.
	ModeObserve Mode = "Observe"
	ModeOff     Mode = "Off"

	SwitchEnforce Switch = "Enforce"
	SwitchOff     Switch = "Off"
)

// AdaptiveTimeout is the deadline that follows the Service's own response time: the
// moving average T = alpha*observed + (1-alpha)*T, times beta, between min and max.
// It bounds the time to the head of a response.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || duration(self.min) <= duration(self.max)",message="min must not be above max"
// +kubebuilder:validation:XValidation:rule="!has(self.initial) || !has(self.max) || duration(self.initial) <= duration(self.max)",message="initial must not be above max"
type AdaptiveTimeout struct {
	// Mode is Enforce, Observe (computed and shown, nothing is cut) or Off. Default:
	// --adaptive-timeout, Enforce.
	// +optional
	Mode *Mode `json:"mode,omitempty"`

	// AlphaPercent is the weight of one answer in the average, 1 to 99. Default: 10.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 99",message="must be between 1 and 99"
	AlphaPercent *int32 `json:"alphaPercent,omitempty"`

	// BetaPercent is the deadline in percent of the average, 101 to 10000. Default:
	// 250.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 101 && self <= 10000",message="must be between 101 and 10000"
	BetaPercent *int32 `json:"betaPercent,omitempty"`

	// Initial is the average before the first answer, 1ms to 1h. Default: max
	// divided by beta.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be between 1ms and 1h"
	Initial *Duration `json:"initial,omitempty"`

	// Min is the least deadline, 1ms to 1h. Default: 5s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be between 1ms and 1h"
	Min *Duration `json:"min,omitempty"`

	// Max is the greatest deadline, 1ms to 1h. Default: pool.responseTimeout.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be between 1ms and 1h"
	Max *Duration `json:"max,omitempty"`
}

// Pressure is what happens when the pool fills up: requests are held and paced, and
// those that can't be held are answered 503. How many are held, and how long, is
// pool.waiting and pool.waitTimeout.
type Pressure struct {
	// Mode is Enforce (the default) or Off: then every place in the pool is given
	// out at once.
	// +optional
	Mode *Switch `json:"mode,omitempty"`

	// ThresholdPercent is the utilisation of the pool from which on places are given
	// out at the rate of the model, 1 to 100. Default: 85.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="must be between 1 and 100"
	ThresholdPercent *int32 `json:"thresholdPercent,omitempty"`

	// HeldBytes is how much of held requests is kept in memory on each node, 1 to
	// 1073741824 bytes. Default: 16777216.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1073741824",message="must be between 1 and 1073741824"
	HeldBytes *int64 `json:"heldBytes,omitempty"`
}
