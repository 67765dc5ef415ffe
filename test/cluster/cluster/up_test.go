package cluster

import (
	"strings"
	"testing"
)

func TestOperateExcludes(t *testing.T) {
	l := layout{dir: t.TempDir()}
	first, err := operate(l)
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	if _, err := operate(l); err == nil || !strings.Contains(err.Error(), "is at work on "+l.dir) {
		t.Errorf("second command on one directory: %v", err)
	}
}
