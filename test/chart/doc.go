// Package chart tests the Helm chart: what it renders (golden files), what it
// refuses and with which words, that a real API server takes all of it, that
// config/ says the same, and what is left when it is uninstalled. It needs bin/helm
// (make bin/helm) and, for the API server, the programs of test/cluster.
package chart
