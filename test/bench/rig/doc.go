//go:build linux

// Package rig is what the benchmark suites share: processes that are started on
// chosen CPUs, sampled and ended; the programs that they need; free ports; wrk
// and the load tool, with what that is told and reports; and medians. It knows no
// scenario.
package rig
