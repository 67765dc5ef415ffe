package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadAudit(t *testing.T) {
	log, err := os.Open(filepath.Join("testdata", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	since := time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC)
	got, err := ReadAudit(log, since)
	if err != nil {
		t.Fatal(err)
	}
	want := []AuditEvent{{
		Time: since, User: "headgate", UserAgent: "headgate/v1", Verb: "patch", Group: "gateway.networking.k8s.io",
		Resource: "httproutes", Subresource: "status", Namespace: "default", Name: "shop", Code: 200,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := ReadAudit(strings.NewReader("garbage\n"), since); err == nil {
		t.Error("garbage is taken")
	}
}
