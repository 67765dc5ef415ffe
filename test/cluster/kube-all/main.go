// Command kube-all is etcd, the control plane, kubelet, kube-proxy and kubectl
// in one static binary, so that they share most of their code on disk and in
// the build. The name that it is called by selects the program.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // CronJobs may name a time zone on a machine without a database of them

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/headgate/headgate/test/cluster/kube-all/multicall"
)

func main() {
	component := func(command func() *cobra.Command) multicall.Program {
		return func(args []string) int {
			os.Args = args // the commands read it
			return cli.Run(command())
		}
	}
	os.Exit(multicall.Run(os.Args, map[string]multicall.Program{
		"etcd": func(args []string) int {
			etcdmain.Main(args)
			return 0
		},
		"kube-apiserver":          component(apiserver.NewAPIServerCommand),
		"kube-controller-manager": component(manager.NewControllerManagerCommand),
		"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kube-proxy":              component(proxy.NewProxyCommand),
		"kubectl": func(args []string) int {
			os.Args = args
			if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
				util.CheckErr(err)
			}
			return 0
		},
	}, os.Stderr))
}
