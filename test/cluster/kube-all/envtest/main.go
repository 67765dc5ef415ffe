// Command envtest is the part of kube-all that controller-runtime's envtest
// runs: etcd, kube-apiserver and kubectl. It builds faster than all of it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/headgate/headgate/test/cluster/kube-all/multicall"
)

func main() {
	os.Exit(multicall.Run(os.Args, map[string]multicall.Program{
		"etcd": func(args []string) int {
			etcdmain.Main(args)
			return 0
		},
		"kube-apiserver": func(args []string) int {
			os.Args = args // the command reads it
			return cli.Run(apiserver.NewAPIServerCommand())
		},
		"kubectl": func(args []string) int {
			os.Args = args
			if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
				util.CheckErr(err)
			}
			return 0
		},
	}, os.Stderr))
}
