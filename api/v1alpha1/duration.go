package v1alpha1

import (
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Duration is a length of time as Gateway API writes it (GEP-2257): numbers with
// the units h, m, s and ms, such as 500ms, 10s or 1h30m.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')",message="must be a duration such as 500ms, 10s or 1h30m"
type Duration string

const durationPattern = `^([0-9]{1,5}(h|m|s|ms)){1,4}$`

var durationExpr = regexp.MustCompile(durationPattern)

// Value returns the length of time; 0 for nil and for a text that is no Duration.
func (d *Duration) Value() time.Duration {
	if d == nil || !durationExpr.MatchString(string(*d)) {
		return 0
	}
	v, err := time.ParseDuration(string(*d))
	if err != nil {
		return 0
	}
	return v
}

// bounds are the values that a duration may have.
type bounds struct {
	least, most time.Duration
	zero        bool // 0s has a meaning of its own
}

// check returns what is wrong with a duration, nil when it is fine or not set.
func (b bounds) check(path *field.Path, d *Duration) *field.Error {
	if d == nil {
		return nil
	}
	if len(*d) > 24 || !durationExpr.MatchString(string(*d)) {
		return field.Invalid(path, string(*d), "must be a duration such as 500ms, 10s or 1h30m")
	}
	if v := d.Value(); v >= b.least && v <= b.most || v == 0 && b.zero {
		return nil
	}
	rule := fmt.Sprintf("must be between %s and %s", short(b.least), short(b.most))
	if b.zero {
		rule = "must be 0s, which turns it off, or between " + short(b.least) + " and " + short(b.most)
	}
	return field.Invalid(path, string(*d), rule)
}

// short writes a whole number of the largest unit that fits.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}
