package cases

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// condition is one condition of an object's status, wherever it stands in it.
type condition struct{ kind, status, reason string }

// conditions reads the status that the gateway wrote for an object: those of
// the object, its listeners and its parents.
func (g *gateway) conditions(t testing.TB, kind, namespace, name string) []condition {
	t.Helper()
	var found []condition
	err := filepath.WalkDir(g.status, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, doc := range strings.Split("\n"+string(data), "\n---") {
			var object map[string]any
			if yaml.Unmarshal([]byte(doc), &object) != nil || object["kind"] != kind {
				continue
			}
			meta, _ := object["metadata"].(map[string]any)
			if ns, _ := meta["namespace"].(string); meta["name"] == name && ns == namespace {
				found = append(found, collect(object["status"])...)
			}
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// collect finds the conditions at any depth.
func collect(v any) []condition {
	var found []condition
	switch v := v.(type) {
	case map[string]any:
		kind, isType := v["type"].(string)
		status, isStatus := v["status"].(string)
		if isType && isStatus {
			reason, _ := v["reason"].(string)
			return []condition{{kind, status, reason}}
		}
		for _, inner := range v {
			found = append(found, collect(inner)...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, collect(inner)...)
		}
	}
	return found
}

// wantCondition waits until an object's status has the condition somewhere.
func (g *gateway) wantCondition(t testing.TB, kind, namespace, name, condType, status, reason string) {
	t.Helper()
	eventually(t, patience, func() error {
		found := g.conditions(t, kind, namespace, name)
		for _, c := range found {
			if c == (condition{condType, status, reason}) {
				return nil
			}
		}
		return fmt.Errorf("%s %s/%s has no %s=%s (%s): %v", kind, namespace, name, condType, status, reason, found)
	})
}
