package controllers_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap/zaptest"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// The API server is asked for the classes and their parameters; one that has none of
// the kinds says nothing, and one that is away is not waited for for ever.
func TestAskProcess(t *testing.T) {
	serve := func(t *testing.T, answers map[string][]byte) *rest.Config {
		t.Helper()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, ok := answers[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}))
		t.Cleanup(srv.Close)
		return &rest.Config{Host: srv.URL}
	}
	answers := map[string][]byte{}
	for path, body := range map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"gateway.networking.k8s.io","versions":[{"groupVersion":"gateway.networking.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"gateway.networking.k8s.io/v1","version":"v1"}},
			{"name":"headgate.dev","versions":[{"groupVersion":"headgate.dev/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"headgate.dev/v1alpha1","version":"v1alpha1"}}]}`,
		"/apis/gateway.networking.k8s.io/v1": `{"kind":"APIResourceList","groupVersion":"gateway.networking.k8s.io/v1","resources":[{"name":"gatewayclasses","kind":"GatewayClass","namespaced":false,"verbs":["list"]}]}`,
		"/apis/headgate.dev/v1alpha1":        `{"kind":"APIResourceList","groupVersion":"headgate.dev/v1alpha1","resources":[{"name":"gatewayparameters","kind":"GatewayParameters","namespaced":true,"verbs":["list"]}]}`,
		"/apis/gateway.networking.k8s.io/v1/gatewayclasses": `{"kind":"GatewayClassList","apiVersion":"gateway.networking.k8s.io/v1","items":[{"metadata":{"name":"headgate"},
			"spec":{"controllerName":"headgate.dev/gateway-controller","parametersRef":{"group":"headgate.dev","kind":"GatewayParameters","namespace":"infra","name":"all"}}}]}`,
		"/apis/headgate.dev/v1alpha1/gatewayparameters": `{"kind":"GatewayParametersList","apiVersion":"headgate.dev/v1alpha1","items":[{"metadata":{"namespace":"infra","name":"all"},"spec":{"workers":3}}]}`,
	} {
		answers[path] = []byte(body)
	}
	log := zaptest.NewLogger(t)
	if got := controllers.AskProcess(t.Context(), serve(t, answers), compile.Options{}, log); got.Workers != 3 {
		t.Errorf("it says %+v", got)
	}
	bare := map[string][]byte{"/api": answers["/api"], "/apis": []byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)}
	if got := controllers.AskProcess(t.Context(), serve(t, bare), compile.Options{}, log); got != (ir.Process{}) {
		t.Errorf("without the kinds it says %+v", got)
	}
	gone, end := context.WithCancelCause(t.Context())
	end(errors.New("the test does not wait"))
	if got := controllers.AskProcess(gone, &rest.Config{Host: "http://127.0.0.1:1"}, compile.Options{}, log); got != (ir.Process{}) {
		t.Errorf("an API server that is away says %+v", got)
	}
}
