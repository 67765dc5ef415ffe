package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// The reasons of events, which are about Services.
const (
	reasonPressure  = "Pressure"
	reasonRelieved  = "PressureRelieved"
	reasonUnhealthy = "BackendsUnhealthy"
	reasonHealthy   = "BackendsHealthy"
)

// herald tells, as events of a Service, when one of its clusters gets into trouble
// and out of it. It is for one goroutine.
type herald struct {
	known map[string]mood // by cluster; nil before the first turn, of which nothing is told
}

// mood is what was told last of a cluster.
type mood struct {
	pressed bool // requests are held or shed
	well    bool
	at      time.Time // of the last event
}

// news returns the events that a turn calls for. Of one cluster there is one in
// [livePace] at most; what was passed over is told with a later turn.
func (h *herald) news(now time.Time, t *turn, controller string) []*corev1.Event {
	first := h.known == nil
	known := make(map[string]mood, len(t.live))
	var out []*corev1.Event
	names := make(map[string]bool, len(t.live)+len(h.known))
	for name := range t.live {
		names[name] = true
	}
	for name := range h.known {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, have := h.known[name]
		if !have {
			was.well = true
		}
		one := []string{name}
		worst, pressure := t.live.pressure(one)
		health := t.live.health(one)
		is := mood{pressed: worst == v1alpha1.PressureHolding || worst == v1alpha1.PressureShedding, well: len(health) == 0, at: was.at}
		switch {
		case first:
		case was.pressed == is.pressed && was.well == is.well:
		case now.Sub(was.at) < livePace && !was.at.IsZero():
			is = was
		default:
			is.at = now
			if was.well != is.well {
				out = append(out, t.event(now, controller, name, !is.well, reasonUnhealthy, reasonHealthy, health, "all ready endpoints get requests"))
			}
			if was.pressed != is.pressed {
				out = append(out, t.event(now, controller, name, is.pressed, reasonPressure, reasonRelieved, pressure, "the pool has places again"))
			}
		}
		if is.pressed || !is.well || now.Sub(is.at) < livePace {
			known[name] = is
		}
	}
	h.known = known
	return slices.DeleteFunc(out, func(e *corev1.Event) bool { return e == nil })
}

// event makes an event of the cluster's Service; nil when that is gone.
func (t *turn) event(now time.Time, controller, cluster string, bad bool, badReason, goodReason string, says []string, good string) *corev1.Event {
	full, _, _ := strings.Cut(cluster, ":")
	namespace, name, _ := strings.Cut(full, "/")
	svc := find(t.input.Services, namespace, name)
	if svc == nil {
		return nil
	}
	kind, reason, message := corev1.EventTypeNormal, goodReason, fmt.Sprintf("cluster %s: %s", cluster, good)
	if bad {
		kind, reason, message = corev1.EventTypeWarning, badReason, strings.Join(says, ". ")
	}
	const most = 1024 // the API's limit
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most-3], "") + "..."
	}
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: name, UID: svc.UID, ResourceVersion: svc.ResourceVersion},
		Reason:         reason, Message: message, Type: kind, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "headgate"}, ReportingController: controller,
	}
}

// proclaim writes events; one that can't be written is lost.
func (k *Kube) proclaim(ctx context.Context, events []*corev1.Event) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, e := range events {
		if err := k.o.Client.Create(ctx, e); err != nil {
			k.log.Debug("an event could not be written", zap.String("service", e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name), zap.Error(err))
			return
		}
	}
}
