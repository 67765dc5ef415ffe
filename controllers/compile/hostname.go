package compile

import (
	"net/netip"
	"strings"
)

// hostnameFault says what is wrong with a hostname, or "". A wildcard is allowed
// as the whole first label.
func hostnameFault(h string) string {
	if len(h) > 253 {
		return "is longer than 253 characters"
	}
	name := strings.TrimPrefix(h, "*.")
	if strings.Contains(name, "*") {
		return `may only have a wildcard as its whole first label, as in "*.example.com"`
	}
	return preciseFault(name)
}

// preciseFault is hostnameFault for names without a wildcard.
func preciseFault(h string) string {
	switch {
	case h == "" || len(h) > 253:
		return "must have 1 to 253 characters"
	case strings.ToLower(h) != h:
		return "must be in lower case"
	case strings.Contains(h, "*"):
		return "must not have a wildcard"
	case strings.Contains(h, ":"):
		return "must not have a port"
	case strings.HasSuffix(h, "."):
		return "must not end with a dot"
	}
	if _, err := netip.ParseAddr(h); err == nil {
		return "must not be an IP address"
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return "must have labels that start and end with a letter or a digit"
		}
		for i := range len(label) {
			c := label[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return "may only have letters, digits, hyphens and dots"
			}
		}
	}
	return ""
}

// within tells whether every host that the hostname h stands for is one that
// outer stands for. "" is any host.
func within(h, outer string) bool {
	if outer == "" || h == outer {
		return true
	}
	suffix, wildcard := strings.CutPrefix(outer, "*")
	if !wildcard || h == "" {
		return false
	}
	h = strings.TrimPrefix(h, "*")
	return len(h) > len(suffix) && strings.HasSuffix(h, suffix)
}

// intersect returns the hosts that both hostnames stand for. Of two hostnames one
// is within the other, or they share nothing.
func intersect(a, b string) (string, bool) {
	switch {
	case within(a, b):
		return a, true
	case within(b, a):
		return b, true
	}
	return "", false
}
