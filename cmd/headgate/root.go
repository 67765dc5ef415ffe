package main

import "github.com/spf13/cobra"

func rootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "headgate",
		Short: "An edge ingress for the Gateway API",
		Long: `Headgate serves Gateway API routes with an asynchronous data plane.

Start with a directory of Gateway API YAML:

  headgate check DIR     says what is wrong with it
  headgate serve DIR     serves it, and follows its changes
  headgate explain DIR   says which rule a request would get, and why

In a cluster, "headgate controller" follows its API server instead. "headgate model"
says what load a node can carry.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(controllerCmd(), serveCmd(), checkCmd(), explainCmd(), modelCmd(), handoverCmd(), probeCmd(), versionCmd())
	return cmd
}
