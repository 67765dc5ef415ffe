package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// Classes reads the GatewayClasses and the GatewayParameters once: what a process
// has to know before it starts its data plane. A kind that the cluster lacks has no
// objects.
func Classes(ctx context.Context, config *rest.Config, o compile.Options) (compile.Input, error) {
	in := compile.Input{Options: o}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{gatewayv1.Install, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return in, fmt.Errorf("read the classes: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return in, fmt.Errorf("read the classes: %w", err)
	}
	var classes gatewayv1.GatewayClassList
	var parameters v1alpha1.GatewayParametersList
	for _, list := range []client.ObjectList{&classes, &parameters} {
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			return in, fmt.Errorf("read the classes: %w", err)
		}
	}
	for i := range classes.Items {
		in.Classes = append(in.Classes, &classes.Items[i])
	}
	for i := range parameters.Items {
		in.Parameters = append(in.Parameters, &parameters.Items[i])
	}
	return in, nil
}
