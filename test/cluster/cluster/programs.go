package cluster

import (
	"fmt"
	"path/filepath"
)

// Names of the processes, which are also those of their logs.
const (
	namePause             = "pause"
	nameEtcd              = "etcd"
	nameAPIServer         = "kube-apiserver"
	nameControllerManager = "kube-controller-manager"
	nameScheduler         = "kube-scheduler"
	nameContainerd        = "containerd"
	nameKubelet           = "kubelet"
	nameProxy             = "kube-proxy"
)

// program is a program with its arguments.
type program struct {
	name string
	args []string // the program's path first
}

// programs says how each program of a cluster is called.
type programs struct {
	layout layout
	mode   Mode
	bin    string // directory of the programs
}

func (p programs) call(name string, flags ...string) program {
	return program{name: name, args: append([]string{filepath.Join(p.bin, name)}, flags...)}
}

// pause is pid 1 of the node.
func (p programs) pause() program { return p.call(namePause) }

func (p programs) etcd() program {
	client := fmt.Sprintf("http://127.0.0.1:%d", etcdPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", etcdPeerPort)
	return p.call(nameEtcd,
		"--data-dir="+p.layout.run("etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // the data is thrown away
		"--log-level=warn",
	)
}

func (p programs) apiServer() program {
	bind := "127.0.0.1"
	if p.mode == Node {
		bind = "0.0.0.0" // of the node
	}
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--bind-address=" + bind,
		fmt.Sprintf("--secure-port=%d", apiServerPort),
		"--advertise-address=" + serverAddress(p.mode).Addr().String(),
		"--tls-cert-file=" + p.layout.certificate(nameAPIServer),
		"--tls-private-key-file=" + p.layout.key(nameAPIServer),
		"--client-ca-file=" + p.layout.certificate("ca"),
		"--service-account-key-file=" + p.layout.certificate("tokens"),
		"--service-account-signing-key-file=" + p.layout.key("tokens"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + p.layout.run("audit-policy.yaml"),
		"--audit-log-path=" + p.layout.log("audit.log"),
		"--audit-log-maxsize=1024", // megabytes; a reader should not meet a rotation
	}
	if p.mode == ControlPlane {
		// A loopback address is refused as an endpoint of the Service
		// kubernetes, which no pod will ask for here.
		flags = append(flags, "--endpoint-reconciler-type=none")
	} else {
		flags = append(flags,
			"--kubelet-client-certificate="+p.layout.certificate("kubelet-client"),
			"--kubelet-client-key="+p.layout.key("kubelet-client"),
			"--kubelet-certificate-authority="+p.layout.certificate("ca"),
			"--kubelet-preferred-address-types=InternalIP",
		)
	}
	return p.call(nameAPIServer, flags...)
}

func (p programs) controllerManager() program {
	return p.call(nameControllerManager,
		"--kubeconfig="+p.layout.kubeconfigOf(nameControllerManager),
		"--service-account-private-key-file="+p.layout.key("tokens"),
		"--root-ca-file="+p.layout.certificate("ca"),
		"--cluster-signing-cert-file="+p.layout.certificate("ca"),
		"--cluster-signing-key-file="+p.layout.key("ca"),
		"--use-service-account-credentials",
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", controllerManagerPort),
		// The default of 20 requests a second is what limits a test that makes
		// thousands of objects.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--allocate-node-cidrs",
		"--cluster-cidr="+clusterCIDR,
		"--node-cidr-mask-size=24",
		"--service-cluster-ip-range="+serviceCIDR,
	)
}

func (p programs) scheduler() program {
	return p.call(nameScheduler,
		"--kubeconfig="+p.layout.kubeconfigOf(nameScheduler),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", schedulerPort),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func (p programs) containerd() program {
	return program{name: nameContainerd, args: []string{"containerd", "--config", p.layout.run("containerd.toml")}}
}

func (p programs) kubelet() program {
	return p.call(nameKubelet,
		"--config="+p.layout.run("kubelet.yaml"),
		"--kubeconfig="+p.layout.kubeconfigOf(nameKubelet),
		"--hostname-override="+nodeName,
		"--node-ip="+nodeAddress,
		"--root-dir="+p.layout.run("kubelet"),
		"--cert-dir="+p.layout.run("kubelet", "pki"),
		"--v=2",
	)
}

func (p programs) proxy() program {
	return p.call(nameProxy,
		"--config="+p.layout.run("kube-proxy.yaml"),
		"--hostname-override="+nodeName,
	)
}
