package file

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// checker collects what an API server would refuse an object for.
type checker struct {
	faults []fault
}

// fail notes a fault at a field.
func (c *checker) fail(field, format string, args ...any) {
	c.faults = append(c.faults, fault{severity: compile.Error, field: field, message: fmt.Sprintf(format, args...)})
}

// must notes a fault when ok is false.
func (c *checker) must(ok bool, field, format string, args ...any) {
	if !ok {
		c.fail(field, format, args...)
	}
}

// The patterns of names, as the CRDs and the API server have them.
var (
	labelName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	subdomainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	hostname      = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	controller    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`)
	kindName      = regexp.MustCompile(`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	protocolName  = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9]+$`)
	headerName    = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$`)
	duration      = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
	pathValue     = regexp.MustCompile(`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`)
)

// metadata checks the parts of the name. What they let through can stand in a
// path and in a log line.
func (c *checker) metadata(k *kind, o metav1.Object) {
	name, namespace := o.GetName(), o.GetNamespace()
	if name == "" {
		c.fail("metadata.name", "must be set")
	} else {
		c.subdomain("metadata.name", name)
	}
	if !k.namespaced {
		c.must(namespace == "", "metadata.namespace", "a %s has no namespace; remove it", k.name)
		return
	}
	c.namespace("metadata.namespace", namespace)
}

func (c *checker) subdomain(field, name string) {
	c.must(len(name) <= 253 && subdomainName.MatchString(name), field,
		"%q is not a name: use up to 253 lower case letters, digits, hyphens and dots", name)
}

func (c *checker) namespace(field, name string) {
	c.must(len(name) <= 63 && labelName.MatchString(name), field,
		"%q is not a namespace: use up to 63 lower case letters, digits and hyphens", name)
}

func (c *checker) hostname(field, name string) {
	c.must(len(name) <= 253 && hostname.MatchString(name), field,
		"%q is not a hostname: use lower case letters, digits, hyphens and dots, with no port, and a wildcard only as the first label", name)
}

func (c *checker) port(field string, port int32) {
	c.must(port >= 1 && port <= 65535, field, "port %d is not between 1 and 65535", port)
}

// between checks the length of a list.
func (c *checker) between(field string, n, least, most int) {
	switch {
	case n < least:
		c.fail(field, "must have at least %d", least)
	case n > most:
		c.fail(field, "has %d, and must have at most %d", n, most)
	}
}
