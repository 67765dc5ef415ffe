package release

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// dockerManifest is the entry of one image in manifest.json, which is what
// `docker load` and `kind load` read.
type dockerManifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// archive is an OCI image layout in a tar file, as `docker save` writes it.
type archive struct {
	out     *tar.Writer
	created time.Time
	blobs   map[v1.Hash]bool // written already
}

// writeImageArchive writes an archive of one image: the layout's index names
// the manifest, and Docker's manifest.json names the same blobs.
func writeImageArchive(w io.Writer, s Source, i Image) error {
	a, err := startArchive(w, s.Created)
	if err != nil {
		return err
	}
	descriptor, paths, err := a.image(i.image)
	if err != nil {
		return err
	}
	descriptor.Platform = i.Platform.descriptor()
	paths.RepoTags = []string{s.Reference()}
	text, err := json.Marshal([]dockerManifest{paths})
	if err != nil {
		return err
	}
	if err := a.file("manifest.json", text); err != nil {
		return err
	}
	return a.finish(s, descriptor)
}

// writeIndexArchive writes an archive of an index with all of its images.
// There is no manifest.json, which can't tell platforms apart.
func writeIndexArchive(w io.Writer, s Source, index v1.ImageIndex, images []Image) error {
	a, err := startArchive(w, s.Created)
	if err != nil {
		return err
	}
	for _, i := range images {
		if _, _, err := a.image(i.image); err != nil {
			return err
		}
	}
	raw, err := index.RawManifest()
	if err != nil {
		return err
	}
	hash, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if err := a.blob(hash, raw); err != nil {
		return err
	}
	return a.finish(s, v1.Descriptor{MediaType: types.OCIImageIndex, Size: int64(len(raw)), Digest: hash})
}

func startArchive(w io.Writer, created time.Time) (*archive, error) {
	a := &archive{out: tar.NewWriter(w), created: created, blobs: make(map[v1.Hash]bool)}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: created, Format: tar.FormatPAX}
		if err := a.out.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// image writes the blobs of an image and returns its descriptor and their paths.
func (a *archive) image(image v1.Image) (v1.Descriptor, dockerManifest, error) {
	var paths dockerManifest
	manifest, err := image.Manifest()
	if err != nil {
		return v1.Descriptor{}, paths, err
	}
	layers, err := image.Layers()
	if err != nil {
		return v1.Descriptor{}, paths, err
	}
	for n, l := range layers {
		content, err := l.Compressed()
		if err != nil {
			return v1.Descriptor{}, paths, err
		}
		text, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil {
			return v1.Descriptor{}, paths, err
		}
		if err := a.blob(manifest.Layers[n].Digest, text); err != nil {
			return v1.Descriptor{}, paths, err
		}
		paths.Layers = append(paths.Layers, blobPath(manifest.Layers[n].Digest))
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return v1.Descriptor{}, paths, err
	}
	if err := a.blob(manifest.Config.Digest, config); err != nil {
		return v1.Descriptor{}, paths, err
	}
	paths.Config = blobPath(manifest.Config.Digest)
	raw, err := image.RawManifest()
	if err != nil {
		return v1.Descriptor{}, paths, err
	}
	digest, err := image.Digest()
	if err != nil {
		return v1.Descriptor{}, paths, err
	}
	return v1.Descriptor{MediaType: types.OCIManifestSchema1, Size: int64(len(raw)), Digest: digest}, paths, a.blob(digest, raw)
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func (a *archive) blob(h v1.Hash, content []byte) error {
	if a.blobs[h] {
		return nil
	}
	a.blobs[h] = true
	return a.file(blobPath(h), content)
}

func (a *archive) file(name string, content []byte) error {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: a.created, Format: tar.FormatPAX,
	}
	if err := a.out.WriteHeader(h); err != nil {
		return err
	}
	_, err := a.out.Write(content)
	return err
}

// finish writes the layout's index, with the one descriptor under the image's
// name, and ends the archive.
func (a *archive) finish(s Source, d v1.Descriptor) error {
	d.Annotations = map[string]string{
		"io.containerd.image.name":          s.Reference(),
		"org.opencontainers.image.ref.name": Tag(s.Version),
	}
	text, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{d}})
	if err != nil {
		return err
	}
	if err := a.file("index.json", text); err != nil {
		return err
	}
	if err := a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return a.out.Close()
}

// writeFile writes the file out by write, whole or not at all.
func writeFile(out string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".image-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return os.Rename(f.Name(), out)
}
