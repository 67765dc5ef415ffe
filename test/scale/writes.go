//go:build linux

package main

import (
	"os"
	"time"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// auditSince returns all writes since a moment, as the API server's audit log has
// them.
func (l *lab) auditSince(since time.Time) ([]cluster.AuditEvent, error) {
	log, err := os.Open(l.audit)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return cluster.ReadAudit(log, since)
}

// writes returns what the controller wrote since a moment, besides its lease.
func (l *lab) writes(since time.Time) ([]cluster.AuditEvent, error) {
	all, err := l.auditSince(since)
	return ours(all), err
}

// ours are the controller's writes that are not of its lease.
func ours(all []cluster.AuditEvent) []cluster.AuditEvent {
	var out []cluster.AuditEvent
	for _, e := range all {
		if e.User == user && e.Resource != "leases" {
			out = append(out, e)
		}
	}
	return out
}

// leases counts the controller's writes of its lease.
func leases(all []cluster.AuditEvent) int {
	n := 0
	for _, e := range all {
		if e.User == user && e.Resource == "leases" {
			n++
		}
	}
	return n
}

// count counts the events about a resource, status or not.
func count(all []cluster.AuditEvent, resource string) int {
	n := 0
	for _, e := range all {
		if e.Resource == resource {
			n++
		}
	}
	return n
}
