package filter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// Exchange is what a filter sees of an exchange.
type Exchange struct {
	// Request is changed in place. Its Path is normalised.
	Request *message.Request
	// Host is the request's host in lower case, without the port.
	Host []byte
	// Port is the port of the socket that took the request.
	Port uint16
	// Prefix is how many bytes of the path the rule's prefix covered, without
	// its trailing slash; 0 when the match was no prefix match.
	Prefix int
	// Answer is filled by a filter that returns false.
	Answer Answer
}

// Answer is a response that a filter gives instead of the backend.
type Answer struct {
	Status   int
	Location string
}

// Filter changes a request, or answers it by filling Answer and returning
// false.
type Filter interface {
	Request(x *Exchange) bool
}

// ResponseFilter changes a response.
type ResponseFilter interface {
	Response(r *message.Response)
}

// Chain is a rule's or a backend's filters. The zero value has none.
type Chain struct {
	request  []Filter
	response []ResponseFilter
}

// ErrUnknown is returned for a filter of the IR with nothing set.
var ErrUnknown = errors.New("filter: nothing set")

// Compile returns the chain of the filters, in their Order.
func Compile(filters []*ir.Filter) (Chain, error) {
	sorted := slices.SortedStableFunc(slices.Values(filters), func(a, b *ir.Filter) int { return cmp.Compare(a.Order, b.Order) })
	var c Chain
	for i, f := range sorted {
		if i > 0 && f.Order == sorted[i-1].Order {
			return Chain{}, fmt.Errorf("filter: two filters with order %d", f.Order)
		}
		switch {
		case f.RequestHeaders != nil:
			c.request = append(c.request, requestHeaders{newHeaders(f.RequestHeaders)})
		case f.ResponseHeaders != nil:
			c.response = append(c.response, responseHeaders{newHeaders(f.ResponseHeaders)})
		case f.Redirect != nil:
			c.request = append(c.request, &redirect{*f.Redirect})
		case f.Rewrite != nil:
			c.request = append(c.request, &rewrite{*f.Rewrite})
		default:
			return Chain{}, ErrUnknown
		}
	}
	return c, nil
}

// Request runs the request filters. It returns false when one of them answered.
func (c *Chain) Request(x *Exchange) bool {
	for _, f := range c.request {
		if !f.Request(x) {
			return false
		}
	}
	return true
}

// Response runs the response filters.
func (c *Chain) Response(r *message.Response) {
	for _, f := range c.response {
		f.Response(r)
	}
}

// Answers tells whether the chain always answers, so that the rule needs no
// backend.
func (c *Chain) Answers() bool {
	return slices.ContainsFunc(c.request, func(f Filter) bool { _, ok := f.(*redirect); return ok })
}
