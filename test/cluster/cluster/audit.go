package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// AuditEvent is one write to the API that was answered.
type AuditEvent struct {
	Time        time.Time
	User        string
	UserAgent   string
	Verb        string // create, update, patch, delete or deletecollection
	Group       string // of the API; empty for core
	Resource    string // plural, as in httproutes
	Subresource string // as in status; empty for the object itself
	Namespace   string
	Name        string
	Code        int // HTTP status of the answer
}

// auditRecord is a line of the audit log, as far as it is read here.
type auditRecord struct {
	RequestReceivedTimestamp time.Time
	UserAgent                string
	Verb                     string
	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	ResponseStatus           struct{ Code int }
}

// ReadAudit reads an audit log, [Cluster.AuditLog], and returns the events of
// requests that came at or after since. An unfinished last line is left out.
func ReadAudit(log io.Reader, since time.Time) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var r auditRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if r.RequestReceivedTimestamp.Before(since) {
			continue
		}
		events = append(events, AuditEvent{
			Time: r.RequestReceivedTimestamp, User: r.User.Username, UserAgent: r.UserAgent, Verb: r.Verb,
			Group: r.ObjectRef.APIGroup, Resource: r.ObjectRef.Resource, Subresource: r.ObjectRef.Subresource,
			Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name, Code: r.ResponseStatus.Code,
		})
	}
}
