package compile

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// Features returns the names of the Gateway API features that the compiler and
// the data plane have, whatever the source of the objects is, in alphabetical
// order.
func Features() []string {
	return []string{
		string(features.SupportGateway),
		string(features.SupportGatewayAddressEmpty),
		string(features.SupportGatewayHTTPListenerIsolation),
		string(features.SupportGatewayHTTPSListenerDetectMisdirectedRequests),
		string(features.SupportGatewayPort8080),
		string(features.SupportGatewayStaticAddresses),
		string(features.SupportHTTPRoute),
		string(features.SupportHTTPRoute303RedirectStatusCode),
		string(features.SupportHTTPRoute307RedirectStatusCode),
		string(features.SupportHTTPRoute308RedirectStatusCode),
		string(features.SupportHTTPRouteBackendProtocolWebSocket),
		string(features.SupportHTTPRouteBackendRequestHeaderModification),
		string(features.SupportHTTPRouteBackendTimeout),
		string(features.SupportHTTPRouteDestinationPortMatching),
		string(features.SupportHTTPRouteHostRewrite),
		string(features.SupportHTTPRouteMethodMatching),
		string(features.SupportHTTPRouteNamedRouteRule),
		string(features.SupportHTTPRouteParentRefPort),
		string(features.SupportHTTPRoutePathRedirect),
		string(features.SupportHTTPRoutePathRewrite),
		string(features.SupportHTTPRoutePortRedirect),
		string(features.SupportHTTPRouteQueryParamMatching),
		string(features.SupportHTTPRouteRequestTimeout),
		string(features.SupportHTTPRouteResponseHeaderModification),
		string(features.SupportHTTPRouteSchemeRedirect),
		string(features.SupportReferenceGrant),
	}
}

// supportedFeatures is the list for a GatewayClass's status: sorted, each once.
func supportedFeatures(more []string) []gatewayv1.SupportedFeature {
	names := append(Features(), more...)
	slices.Sort(names)
	names = slices.Compact(names)
	list := make([]gatewayv1.SupportedFeature, len(names))
	for i, n := range names {
		list[i].Name = gatewayv1.FeatureName(n)
	}
	return list
}
