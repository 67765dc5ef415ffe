package port

import (
	"fmt"
	"slices"
)

// Advice says how to get the port, or who has it.
func (h Holder) Advice() string {
	number := h.Addr.Port()
	switch {
	case h.Self:
		return "it is the port of another listener or of --admin-address; change one of them"
	case h.PID == 0:
		return fmt.Sprintf("ss -ltnp 'sport = :%d' on the node, as root, names it; stop it or use another port", number)
	}
	for _, k := range known {
		if slices.Contains(k.commands, h.Command) && (!k.pod || h.Pod != "") {
			return k.advice
		}
	}
	if h.Pod != "" {
		return "kubectl get pods -A -o custom-columns=NS:.metadata.namespace,NAME:.metadata.name,UID:.metadata.uid names the pod; remove it or use another port"
	}
	return "stop it or use another port"
}

// known are the usual holders, and what is special about them.
var known = [...]struct {
	commands []string
	pod      bool // only in a pod
	advice   string
}{
	{[]string{"headgate"}, false, "another Headgate runs on this host: in an upgrade it goes by itself; else remove one of the two"},
	{[]string{"traefik"}, false, adviceTraefik},
	{[]string{"nginx", "nginx-ingress", "nginx-ingress-c"}, true, adviceNginx},
	{[]string{"nginx"}, false, "systemctl disable --now nginx stops it, if it is the system's; or use another port"},
	{[]string{"haproxy"}, false, "systemctl disable --now haproxy stops it, if it is the system's; a HAProxy ingress controller must be uninstalled; or use another port"},
	{[]string{"envoy"}, false, "it belongs to another gateway or mesh (Envoy Gateway, Contour, Istio, Cilium): uninstall that or move it to other ports; or use another port"},
	{[]string{"apache2", "httpd"}, false, "systemctl disable --now apache2 (httpd on Red Hat's systems) stops it; or use another port"},
	{[]string{"caddy", "lighttpd"}, false, "systemctl disable --now with its name stops it, if it is the system's; or use another port"},
}

const (
	adviceMicroK8s = "microk8s disable ingress, which also DELETES THE GATEWAY API CRDs and with them every Gateway and route: save those first and install the CRDs again"
	adviceTraefik  = "k3s: put 'disable: [traefik, servicelb]' into /etc/rancher/k3s/config.yaml and restart k3s; MicroK8s: " + adviceMicroK8s + "; or use another port"
	adviceNginx    = "uninstall the nginx ingress controller (MicroK8s: " + adviceMicroK8s + "); or use another port"
)
