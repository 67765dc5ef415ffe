package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of Headgate's kinds.
const GroupName = "headgate.dev"

// GroupVersion is the group with the version of this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&BackendPolicy{}, &BackendPolicyList{},
		&DataPlane{}, &DataPlaneList{},
		&GatewayParameters{}, &GatewayParametersList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
