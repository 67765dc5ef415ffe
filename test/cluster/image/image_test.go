package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// capability is cap_net_bind_service=ep, as the kernel stores it.
var capability = []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// newRoot makes a small root: a program, a directory that anyone may write to,
// and a link. stamp is the time that all of it gets.
func newRoot(t *testing.T, stamp time.Time) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []struct {
		name string
		mode os.FileMode
	}{{"bin", 0o755}, {"tmp", 0o777 | os.ModeSticky}} {
		path := filepath.Join(root, dir.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, dir.mode); err != nil { // Mkdir's mode is subject to the umask
			t.Fatal(err)
		}
	}
	program := filepath.Join(root, "bin", "echo")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("echo", filepath.Join(root, "bin", "cat")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(program, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = content
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestWrite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "echo.tar")
	spec := Spec{
		Names:      []string{"local.test/echo:1", "registry.test:5000/gateway-api/echo-basic:v1.5.1"},
		Root:       newRoot(t, time.Unix(1_000_000_000, 0)),
		Entrypoint: []string{"/bin/echo", "-n"},
	}
	if err := Write(out, spec); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	files := read(t, bytes.NewReader(content))
	var manifests []manifest
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil {
		t.Fatal(err)
	}
	want := []manifest{{
		Config:   digest(files[manifests[0].Config]) + ".json",
		RepoTags: spec.Names,
		Layers:   []string{"layer.tar"},
	}}
	if diff := cmp.Diff(want, manifests); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	wantConfig := fmt.Sprintf(`{"architecture":%q,"os":"linux","created":"1970-01-01T00:00:00Z",`+
		`"config":{"Entrypoint":["/bin/echo","-n"],"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],"WorkingDir":"/"},`+
		`"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`, runtime.GOARCH, digest(files["layer.tar"]))
	if diff := cmp.Diff(wantConfig, string(files[manifests[0].Config])); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	left, err := os.ReadDir(filepath.Dir(out))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("files beside the archive: %v", left)
	}
}

// TestLayerBytes pins the layer's bytes: a change of them is a change of the
// image's digest, of every image that was ever made here.
func TestLayerBytes(t *testing.T) {
	const golden = "b20c53b32eab4de92f45b19972278fabe46755ddf4fa4a2bca21b14c887c1c09"
	for _, stamp := range []time.Time{time.Unix(1, 0), time.Unix(1_700_000_000, 5)} {
		entries, err := walk(newRoot(t, stamp), func(path string) ([]byte, error) {
			return map[string][]byte{"echo": capability}[filepath.Base(path)], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var layer bytes.Buffer
		if err := writeLayer(&layer, entries); err != nil {
			t.Fatal(err)
		}
		if got := digest(layer.Bytes()); got != golden {
			t.Errorf("SHA-256 of the layer %s, want %s", got, golden)
		}
	}
}

func TestLayerContent(t *testing.T) {
	entries, err := walk(newRoot(t, time.Unix(1, 0)), func(string) ([]byte, error) { return capability, nil })
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	if err := writeLayer(&layer, entries); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&layer); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%c %04o %s", header.Typeflag, header.Mode, header.Name)
		if header.Linkname != "" {
			line += " -> " + header.Linkname
		}
		if header.PAXRecords[capabilityRecord] == string(capability) {
			line += " capable"
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s has an owner or a time: %+v", header.Name, header)
		}
		got = append(got, line)
	}
	want := []string{"5 0755 bin/", "2 0777 bin/cat -> echo", "0 0755 bin/echo capable", "5 1777 tmp/"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestWriteRefuses(t *testing.T) {
	root := newRoot(t, time.Unix(1, 0))
	odd := newRoot(t, time.Unix(1, 0))
	if err := syscall.Mkfifo(filepath.Join(odd, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := Spec{Names: []string{"local.test/echo:1"}, Root: root, Entrypoint: []string{"/bin/echo"}}
	for _, tc := range []struct {
		name string
		edit func(*Spec)
		err  string
	}{
		{"no name", func(s *Spec) { s.Names = nil }, "needs a name"},
		{"no tag", func(s *Spec) { s.Names = []string{"local.test/echo"} }, "is not NAME:TAG"},
		{"upper case", func(s *Spec) { s.Names = []string{"local.test/Echo:1"} }, "is not NAME:TAG"},
		{"no entry point", func(s *Spec) { s.Entrypoint = nil }, "needs an entry point"},
		{"relative entry point", func(s *Spec) { s.Entrypoint = []string{"bin/echo"} }, "not an absolute path"},
		{"missing entry point", func(s *Spec) { s.Entrypoint = []string{"/bin/ls"} }, "no such file"},
		{"missing root", func(s *Spec) { s.Root = filepath.Join(root, "none") }, "no such file"},
		{"a pipe", func(s *Spec) { s.Root = odd }, "neither a file, a directory nor a symbolic link"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := good
			tc.edit(&spec)
			out := filepath.Join(t.TempDir(), "echo.tar")
			err := Write(out, spec)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("an archive was written all the same")
			}
		})
	}
}

func TestFileCapability(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := fileCapability(plain); got != nil || err != nil {
		t.Errorf("a plain file: %x, %v", got, err)
	}
	if _, err := fileCapability(plain + ".missing"); err == nil {
		t.Error("a missing file: no error")
	}
	// Only root may set a capability; without it the two cases above are what there is.
	if err := syscall.Setxattr(plain, "security.capability", capability, 0); err == nil {
		if got, err := fileCapability(plain); !bytes.Equal(got, capability) || err != nil {
			t.Errorf("a capable file: %x, %v; want %x", got, err, capability)
		}
	}
}
