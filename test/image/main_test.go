package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/image/release"
)

func TestRunRefuses(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"an argument", `"linux/arm64" is not a flag`, []string{"linux/arm64"}},
		{"a platform", "linux/amd64, linux/arm64, linux/arm/v7", []string{"-platforms", "linux/amd64,linux/s390x"}},
		{"two roots", "-root is for one platform", []string{"-version", "v1", "-root", t.TempDir(), "-platforms", "linux/amd64,linux/arm64"}},
		{"a version", "spaces or quotes", []string{"-version", "v 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), tc.args, &out, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("it says %q all the same", &out)
			}
		})
	}
	var usage bytes.Buffer
	if err := run(t.Context(), []string{"-help"}, io.Discard, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-platforms") {
		t.Errorf("-help: %v\n%s", err, &usage)
	}
}

func TestParsePlatforms(t *testing.T) {
	for _, tc := range []struct {
		list string
		one  bool
		want []release.Platform
	}{
		{"", false, release.All()},
		{"", true, []release.Platform{release.Host()}},
		{"linux/arm/v7,linux/arm64", false, []release.Platform{{Arch: "arm", Arm: "7"}, {Arch: "arm64"}}},
	} {
		got, err := parsePlatforms(tc.list, tc.one)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.list, diff)
		}
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	err := report(&out, release.Release{
		Reference: "ghcr.io/headgate/headgate:v1", Archive: "all.tar", Digest: "sha256:2",
		Images: []release.Image{{Platform: release.All()[2], Archive: "arm.tar", SBOM: "arm.json", Digest: "sha256:1", Size: 40_460_000, Compressed: 12_960_000}},
	})
	want := `ghcr.io/headgate/headgate:v1
linux/arm/v7   40.5 MB, 13.0 MB compressed  sha256:1
  arm.tar
  arm.json
all                                        sha256:2
  all.tar
`
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Errorf("report (-want +got), %v:\n%s", err, diff)
	}
}
