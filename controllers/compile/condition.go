package compile

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxListed bounds how many issues one condition's message spells out.
const maxListed = 8

// condition returns a condition without a time: the sink knows since when it
// holds.
func condition[T, R ~string](kind T, ok bool, reason R, generation int64, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: string(kind), Status: status, Reason: string(reason),
		ObservedGeneration: generation, Message: message,
	}
}

// summary joins issues into one message.
func summary(is []issue) string {
	var b strings.Builder
	for i, x := range is {
		if i == maxListed {
			fmt.Fprintf(&b, ". And %d more", len(is)-i)
			break
		}
		if i > 0 {
			b.WriteString(". ")
		}
		if x.field != "" {
			b.WriteString(x.field)
			b.WriteString(": ")
		}
		b.WriteString(x.message)
	}
	return b.String()
}
