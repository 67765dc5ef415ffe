package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ByteSize is a number of bytes as Kubernetes writes memory: a whole number with the
// unit Ki, Mi or Gi, such as 512Mi.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,8}(Ki|Mi|Gi)$')",message="must be a number of bytes such as 512Mi or 2Gi"
type ByteSize string

const byteSizePattern = `^[1-9][0-9]{0,8}(Ki|Mi|Gi)$`

var byteSizeExpr = regexp.MustCompile(byteSizePattern)

// Value returns the number of bytes; 0 for nil and for a text that is no ByteSize.
func (b *ByteSize) Value() int64 {
	if b == nil || !byteSizeExpr.MatchString(string(*b)) {
		return 0
	}
	text := string(*b)
	n, err := strconv.ParseInt(text[:len(text)-2], 10, 64)
	if err != nil {
		return 0
	}
	return n << (10 * (1 + strings.IndexByte("KMG", text[len(text)-2])))
}

// byteSize checks one that may be absent.
func (v *validator) byteSize(path *field.Path, b *ByteSize, least, most ByteSize) {
	switch n := b.Value(); {
	case b == nil:
	case n == 0:
		v.add(field.Invalid(path, string(*b), "must be a number of bytes such as 512Mi or 2Gi"))
	case n < least.Value() || n > most.Value():
		v.add(field.Invalid(path, string(*b), fmt.Sprintf("must be between %s and %s", least, most)))
	}
}
