package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Labels and annotations of a Gateway's Service.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelGateway   = "gateway.networking.k8s.io/gateway-name"
	labelClass     = "gateway.networking.k8s.io/gateway-class-name"
	managedBy      = "headgate"

	// annotationKeys lists the labels and annotations that are from the Gateway, so
	// that they can be taken back, and others be left alone.
	annotationKeys = "headgate.dev/infrastructure"
)

// mostName is the limit of a Service's name and of a label's value.
const mostName = 63

// services adds the Service of each Gateway. It stands for the Gateway in its
// namespace: it carries the labels and annotations of spec.infrastructure, and
// names the ports. It selects no pods: clients come to the Gateway's addresses.
func (k *Kube) services(out []subject, t *turn) []subject {
	for _, r := range t.report.Gateways {
		gw := find(t.input.Gateways, r.Namespace, r.Name)
		if gw == nil || gw.UID != r.UID || gw.DeletionTimestamp != nil {
			continue
		}
		name := types.NamespacedName{Namespace: gw.Namespace, Name: serviceName(gw.Name)}
		s := subject{subjectKey: subjectKey{"Service", name}, says: serviceOf{gw.UID, gw.Generation}}
		if have := find(t.input.Services, name.Namespace, name.Name); have != nil {
			s.object = have
		}
		s.change = func(o client.Object, _ metav1.Time) write {
			have, ok := o.(*corev1.Service)
			if !ok {
				want := newService(gw)
				return func(ctx context.Context, c client.Client) (client.Object, error) { return want, c.Create(ctx, want) }
			}
			if !owned(have, gw) {
				return nil // somebody else's
			}
			want := changedService(have, gw)
			if equality.Semantic.DeepEqual(have, want) {
				return nil
			}
			return func(ctx context.Context, c client.Client) (client.Object, error) {
				patch := client.MergeFromWithOptions(have.DeepCopy(), client.MergeFromWithOptimisticLock{})
				return want, c.Patch(ctx, want, patch)
			}
		}
		out = append(out, s)
	}
	return out
}

// serviceOf is what a Service depends on.
type serviceOf struct {
	uid        types.UID
	generation int64
}

// serviceName is the name of the Service of a Gateway: its name, cut if need be,
// and a hash of it, so that no two Gateways share one.
func serviceName(gateway string) string {
	const prefix = "headgate-"
	sum := sha256.Sum256([]byte(gateway))
	hash := hex.EncodeToString(sum[:5])
	name := strings.ReplaceAll(gateway, ".", "-")
	if most := mostName - len(prefix) - 1 - len(hash); len(name) > most {
		name = strings.TrimRight(name[:most], "-")
	}
	return prefix + name + "-" + hash
}

// labelValue is a name as a label's value can have it.
func labelValue(name string) string {
	if len(name) <= mostName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:mostName-1-len(hash)], "-.") + "-" + hash
}

// owned tells whether we made the Service for the Gateway.
func owned(s *corev1.Service, gw *gatewayv1.Gateway) bool {
	return s.Labels[labelManagedBy] == managedBy &&
		slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == gw.UID })
}

func newService(gw *gatewayv1.Gateway) *corev1.Service {
	yes := true
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gw.Namespace, Name: serviceName(gw.Name),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway", Name: gw.Name, UID: gw.UID, Controller: &yes,
			}},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone},
	}
	return changedService(s, gw)
}

// changedService returns the Service as the Gateway wants it.
func changedService(have *corev1.Service, gw *gatewayv1.Gateway) *corev1.Service {
	s := have.DeepCopy()
	if s.Labels == nil {
		s.Labels = make(map[string]string)
	}
	if s.Annotations == nil {
		s.Annotations = make(map[string]string)
	}
	for _, key := range strings.Split(s.Annotations[annotationKeys], ",") {
		if key, ok := strings.CutPrefix(key, "label:"); ok {
			delete(s.Labels, key)
		} else if key, ok := strings.CutPrefix(key, "annotation:"); ok {
			delete(s.Annotations, key)
		}
	}
	delete(s.Annotations, annotationKeys)
	var keys []string
	if in := gw.Spec.Infrastructure; in != nil {
		for _, key := range slices.Sorted(maps.Keys(in.Labels)) {
			s.Labels[string(key)] = string(in.Labels[key])
			keys = append(keys, "label:"+string(key))
		}
		for _, key := range slices.Sorted(maps.Keys(in.Annotations)) {
			s.Annotations[string(key)] = string(in.Annotations[key])
			keys = append(keys, "annotation:"+string(key))
		}
	}
	if len(keys) > 0 {
		s.Annotations[annotationKeys] = strings.Join(keys, ",")
	}
	s.Labels[labelManagedBy] = managedBy
	s.Labels[labelGateway] = labelValue(gw.Name)
	s.Labels[labelClass] = labelValue(string(gw.Spec.GatewayClassName))
	s.Spec.Ports = servicePorts(s.Spec.Ports, gw)
	return s
}

// servicePorts returns a port for each port of the listeners. Ports that are
// there stay as they are.
func servicePorts(have []corev1.ServicePort, gw *gatewayv1.Gateway) []corev1.ServicePort {
	var numbers []int32
	for _, l := range gw.Spec.Listeners {
		numbers = append(numbers, l.Port)
	}
	slices.Sort(numbers)
	var out []corev1.ServicePort
	for _, n := range slices.Compact(numbers) {
		p := corev1.ServicePort{Name: fmt.Sprintf("port-%d", n), Port: n, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(n)}
		if i := slices.IndexFunc(have, func(h corev1.ServicePort) bool { return h.Port == n && h.Name == p.Name }); i >= 0 {
			p = have[i]
		}
		out = append(out, p)
	}
	return out
}
