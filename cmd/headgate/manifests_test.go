package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// What the chart's manifests start is what this program has: commands and flags.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../../test/chart/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../config/manager/daemonset.yaml")
	commands := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".values.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var o struct {
				Spec struct{ Template corev1.PodTemplateSpec }
			}
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			pod := o.Spec.Template.Spec
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				lines := [][]string{c.Args}
				for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
					if p == nil || p.Exec == nil {
						continue
					}
					if p.Exec.Command[0] != "/headgate" {
						t.Errorf("%s: a probe runs %s", file, p.Exec.Command[0])
					}
					lines = append(lines, p.Exec.Command[1:])
				}
				for _, line := range lines {
					commands++
					cmd, args, err := rootCmd().Find(line)
					if err == nil {
						err = cmd.ParseFlags(args)
					}
					if err == nil {
						err = cmd.ValidateArgs(cmd.Flags().Args())
					}
					if err != nil {
						t.Errorf("%s: headgate %s: %v", file, strings.Join(line, " "), err)
					}
				}
			}
		}
	}
	if commands < 4*len(files)/2 {
		t.Errorf("only %d commands in %d files", commands, len(files))
	}
}
