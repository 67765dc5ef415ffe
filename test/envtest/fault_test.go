package envtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers"
)

// faults stands between a replica and the API server and answers in its place
// when a test says so.
type faults struct {
	mu     sync.Mutex
	answer func(*http.Request) *http.Response // nil, or nil from it, lets a request pass
	times  []time.Time                        // of those that were answered
}

// between puts the faults between a replica and the API server.
func (f *faults) between(o *controllers.ManagerOptions) {
	o.Config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			f.mu.Lock()
			answer := f.answer
			f.mu.Unlock()
			if answer != nil {
				if res := answer(q); res != nil {
					f.mu.Lock()
					f.times = append(f.times, time.Now())
					f.mu.Unlock()
					if q.Body != nil {
						q.Body.Close()
					}
					return res, nil
				}
			}
			return base.RoundTrip(q)
		})
	})
}

// set says how requests are answered from now on, and returns when they were so
// far.
func (f *faults) set(answer func(*http.Request) *http.Response) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
	times := f.times
	f.times = nil
	return times
}

// statusOf tells whether a request writes the status of an object.
func statusOf(q *http.Request, name string) bool {
	return q.Method == http.MethodPatch && strings.HasSuffix(q.URL.Path, "/"+name+"/status")
}

// isWatch tells whether a request begins a watch of a resource.
func isWatch(q *http.Request, resource string) bool {
	return q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/"+resource) && q.URL.Query().Get("watch") != ""
}

// refuse is the API server's answer of a status code.
func refuse(q *http.Request, code int, reason metav1.StatusReason) *http.Response {
	return respond(q, code, status(code, reason))
}

// breakOff is a watch that begins well, and ends with an error.
func breakOff(q *http.Request, code int, reason metav1.StatusReason) *http.Response {
	return respond(q, http.StatusOK, map[string]any{"type": "ERROR", "object": status(code, reason)})
}

func status(code int, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "the test says so",
	}
}

func respond(q *http.Request, code int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: q,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(append(text, '\n'))),
		ContentLength: int64(len(text)) + 1,
	}
}
