package file

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// lint finds what a cluster's own controllers would never do and a person easily
// does: EndpointSlices that belong to no Service.
func lint(in *compile.Input) []compile.Problem {
	type name struct{ namespace, name string }
	services := make(map[name]bool, len(in.Services))
	for _, s := range in.Services {
		services[name{s.Namespace, s.Name}] = true
	}
	var problems []compile.Problem
	for _, s := range in.EndpointSlices {
		var msg string
		switch service, ok := s.Labels[discoveryv1.LabelServiceName]; {
		case !ok:
			msg = fmt.Sprintf("belongs to no Service; name it in the label %s", discoveryv1.LabelServiceName)
		case !services[name{s.Namespace, service}]:
			msg = fmt.Sprintf("belongs to Service %s/%s, which does not exist", s.Namespace, service)
		default:
			continue
		}
		problems = append(problems, compile.Problem{
			Severity: compile.Warning, Kind: "EndpointSlice", Namespace: s.Namespace, Name: s.Name,
			Field: "metadata.labels", Reason: "NoService", Message: msg,
		})
	}
	return problems
}
