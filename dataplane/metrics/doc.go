// Package metrics counts what the data plane does and shows it to Prometheus.
// Every value has one writer, the loop that it belongs to, so that counting on
// the request path takes no lock, no locked instruction and no allocation; a
// scrape reads the loops' values from outside and adds them up. The exchange
// and the upstream pools write here; the admin server serves the registry.
//
// The number of series is bounded: see [Options].
package metrics
