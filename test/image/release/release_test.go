package release

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var created = time.Unix(1_700_000_000, 0).UTC()

func source() Source {
	return Source{Dir: ".", Version: "v1.2.3+more", Revision: "0123abc", Created: created}
}

// small returns an image whose program is a few bytes.
func small(t *testing.T, p Platform) Image {
	t.Helper()
	image, err := assemble(source(), p, contents([]byte("program of "+p.String()), []byte("{}\n"), []byte("terms\n")), source().labels("MIT"))
	if err != nil {
		t.Fatal(err)
	}
	return Image{Platform: p, image: image}
}

// unpack unpacks an archive, refusing what is not a plain file or directory.
func unpack(t *testing.T, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(created) {
			t.Errorf("%s is of %d:%d at %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeReg:
			var f *os.File
			if f, err = os.Create(name); err == nil {
				_, err = io.Copy(f, r)
				err = errors.Join(err, f.Close())
			}
		default:
			err = fmt.Errorf("%s is of type %c", h.Name, h.Typeflag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestImageArchive(t *testing.T) {
	arm := All()[2]
	var archive bytes.Buffer
	if err := writeImageArchive(&archive, source(), small(t, arm)); err != nil {
		t.Fatal(err)
	}
	// As an OCI layout, which containerd and Podman read.
	path, err := layout.FromPath(unpack(t, archive.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index %+v, %v", manifest, err)
	}
	d := manifest.Manifests[0]
	want := map[string]string{
		"io.containerd.image.name":          "ghcr.io/headgate/headgate:v1.2.3-more",
		"org.opencontainers.image.ref.name": "v1.2.3-more",
	}
	if diff := cmp.Diff(want, d.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if d.Platform.String() != "linux/arm/v7" {
		t.Errorf("platform %s", d.Platform)
	}
	image, err := index.Image(d.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	checkConfig(t, image)
	checkLayer(t, image)

	// As Docker's archive, which docker load and kind read.
	name := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(name, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(name) })
	if err != nil || len(manifests) != 1 || len(manifests[0].RepoTags) != 1 || manifests[0].RepoTags[0] != source().Reference() {
		t.Fatalf("manifest.json: %+v, %v", manifests, err)
	}
	docker, err := tarball.ImageFromPath(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(docker); err != nil {
		t.Error(err)
	}
	one, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := docker.ConfigName(); err != nil || one != two {
		t.Errorf("two configurations in one archive: %s, %s, %v", one, two, err)
	}
}

func checkConfig(t *testing.T, image v1.Image) {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{"/headgate"}, WorkingDir: "/", Env: []string{"PATH=/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":         "Headgate",
			"org.opencontainers.image.description":   "An edge ingress controller for the Gateway API",
			"org.opencontainers.image.source":        "https://github.com/headgate/headgate",
			"org.opencontainers.image.documentation": "https://github.com/headgate/headgate/tree/main/docs",
			"org.opencontainers.image.version":       "v1.2.3+more",
			"org.opencontainers.image.revision":      "0123abc",
			"org.opencontainers.image.created":       "2023-11-14T22:13:20Z",
			"org.opencontainers.image.licenses":      "MIT",
		},
	}
	if diff := cmp.Diff(want, c.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if c.OS != "linux" || c.Architecture != "arm" || c.Variant != "v7" || !c.Created.Equal(created) {
		t.Errorf("for %s/%s/%s at %v", c.OS, c.Architecture, c.Variant, c.Created)
	}
	m, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Labels, m.Annotations); diff != "" {
		t.Errorf("annotations of the manifest (-want +got):\n%s", diff)
	}
}

func checkLayer(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %v, %v", layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var got []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%c %04o %d:%d %s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Name)
		if c := h.PAXRecords["SCHILY.xattr.security.capability"]; c != "" {
			line += " " + hex.EncodeToString([]byte(c))
		}
		if !h.ModTime.Equal(created) || h.Uname != "" {
			t.Errorf("%s has a time or an owner of its own: %+v", h.Name, h)
		}
		got = append(got, line)
	}
	want := []string{
		"5 0755 0:0 etc/",
		"0 0644 0:0 etc/group",
		"0 0644 0:0 etc/passwd",
		// Revision 2, permitted bit 10, not effective.
		"0 0755 0:0 headgate 0000000200040000000000000000000000000000",
		"5 0755 0:0 usr/",
		"5 0755 0:0 usr/share/",
		"5 0755 0:0 usr/share/doc/",
		"5 0755 0:0 usr/share/doc/headgate/",
		"0 0644 0:0 usr/share/doc/headgate/licenses.txt",
		"0 0644 0:0 usr/share/doc/headgate/sbom.spdx.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestIndexArchive(t *testing.T) {
	var images []Image
	for _, p := range All() {
		images = append(images, small(t, p))
	}
	index, err := join(images, source().labels(""))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := writeIndexArchive(&archive, source(), index, images); err != nil {
		t.Fatal(err)
	}
	path, err := layout.FromPath(unpack(t, archive.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	outer, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != source().Reference() {
		t.Fatalf("index.json: %+v, %v", manifest, err)
	}
	inner, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all.Manifests {
		got = append(got, d.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64", "linux/arm/v7"}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	// An image alone and the one in the index are the same.
	for n, i := range images {
		if digest, err := i.image.Digest(); err != nil || all.Manifests[n].Digest != digest {
			t.Errorf("%s: %s in the index, %s alone, %v", i.Platform, all.Manifests[n].Digest, digest, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	_, err := assemble(source(), Host(), contents(make([]byte, MaxSize+1), nil, nil), nil)
	if err == nil || !strings.Contains(err.Error(), "more than 60000000") {
		t.Errorf("error %v", err)
	}
}

// TestReproducible builds the real program twice, the second time from a copy of
// the source in another directory.
func TestReproducible(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	s, err := FindSource(t.Context(), ".", "v0.0.1-test", "0123abc")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := s
	elsewhere.Dir = t.TempDir()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || slices.Contains([]string{"bin", "test"}, e.Name()) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := os.CopyFS(filepath.Join(elsewhere.Dir, e.Name()), os.DirFS(filepath.Join(s.Dir, e.Name()))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(elsewhere.Dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var sums [2]string
	for n, from := range []Source{s, elsewhere} {
		out := t.TempDir()
		r, err := Build(t.Context(), from, []Platform{Host()}, out)
		if err != nil {
			t.Fatal(err)
		}
		i := r.Images[0]
		if i.Size > MaxSize || i.Compressed > i.Size || i.Compressed == 0 {
			t.Errorf("%d bytes, %d compressed", i.Size, i.Compressed)
		}
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[n] = string(text)
		for line := range strings.Lines(sums[n]) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			content, err := os.ReadFile(filepath.Join(out, name))
			if digest := sha256.Sum256(content); err != nil || hex.EncodeToString(digest[:]) != sum {
				t.Errorf("SHA256SUMS: %s is not the sum of %s, %v", sum, name, err)
			}
		}
		if n == 0 {
			checkSBOM(t, i.SBOM)
		}
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("two builds of one source (-first +second):\n%s", diff)
	}
}

// checkSBOM checks that the modules of go.mod's first block are described, with
// licences that are known.
func checkSBOM(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Packages []struct{ Name, VersionInfo, LicenseConcluded, SourceInfo string }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, p := range d.Packages {
		names[p.Name] = true
		if p.LicenseConcluded == "NOASSERTION" && p.Name != modulePath {
			t.Errorf("the licence of %s is not known", p.Name)
		}
	}
	for _, name := range []string{modulePath, "stdlib", "github.com/panjf2000/gnet/v2", "sigs.k8s.io/controller-runtime"} {
		if !names[name] {
			t.Errorf("%s is not described", name)
		}
	}
}

// TestManifestNamesTheImage checks that what is installed is what is made.
func TestManifestNamesTheImage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "manager", "daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("image: "+Name+":")) {
		t.Errorf("config/manager has another image than %s", Name)
	}
}
