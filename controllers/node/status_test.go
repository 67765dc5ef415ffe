package node_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/node"
	"github.com/headgate/headgate/dataplane/ir"
)

// A port that very many Gateways share may be taken. All of that must have place
// in an object, of which the API server takes 1.5 MB.
func TestManyFaults(t *testing.T) {
	in := compile.Input{
		Classes: []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}}},
		Options: compile.Options{Addresses: compile.Addresses{Bind: []netip.Addr{netip.MustParseAddr("0.0.0.0")}, Node: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}},
	}
	const many = 4000
	for i := range many {
		host := gatewayv1.Hostname(fmt.Sprintf("h%04d.example.com", i))
		in.Gateways = append(in.Gateways, &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("gw-%04d", i), Generation: 1},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "c", Listeners: []gatewayv1.Listener{
				{Name: "a", Port: 80, Hostname: &host, Protocol: gatewayv1.HTTPProtocolType},
			}},
		})
	}
	_, report := compile.Compile(in)
	taken := &compile.Occupied{
		Err: fmt.Errorf("bind: %w", syscall.EADDRINUSE), At: netip.MustParseAddrPort("0.0.0.0:80"), Holder: "nginx", Advice: strings.Repeat("stop it, or ", 30),
	}
	report = report.Applied(ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": taken}})
	run(t, func(s *server, _ *work, r *node.Reporter) {
		r.Observe(&node.Observation{Hash: "a", Gateways: report.Gateways})
		wait(0)
		status := s.now().Status
		if text, err := json.Marshal(s.now()); err != nil || len(text) > 1<<20 {
			t.Errorf("the object has %d bytes, error %v", len(text), err)
		}
		if len(status.Gateways) != many || status.Faults != many {
			t.Fatalf("%d Gateways and %d faults", len(status.Gateways), status.Faults)
		}
		for i, has := range map[int]string{0: "is held by nginx", many - 1: "the log of this node"} {
			if l := status.Gateways[i].Listeners; len(l) != 1 || !strings.Contains(l[0].Message, has) {
				t.Errorf("Gateway %d: %v, want %q", i, l, has)
			}
		}
	})
}

// What a process must be restarted for is told at once, and so is that it was.
func TestRestart(t *testing.T) {
	run(t, func(s *server, _ *work, r *node.Reporter) {
		for _, restart := range []string{"", "workers: 4 is asked for, the process runs with 2", ""} {
			r.Observe(&node.Observation{Hash: "a", Restart: restart})
			wait(2 * time.Second)
			if got := s.now().Status.Restart; got != restart {
				t.Errorf("it says %q, want %q", got, restart)
			}
		}
	})
}
