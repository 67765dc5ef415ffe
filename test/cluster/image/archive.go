package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

// Spec describes an image.
type Spec struct {
	Names      []string // NAME:TAG, at least one
	Root       string   // directory that becomes the image's root
	Entrypoint []string // absolute path in the image, then arguments
}

// name is what an image may be called here: a path, perhaps after a registry's
// host and port, and a tag.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// path is PATH inside a container, as other tools that make images set it.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// config is the image's configuration, as in the OCI image specification.
type config struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       process   `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type process struct {
	Entrypoint []string `json:"Entrypoint"`
	Env        []string `json:"Env"`
	WorkingDir string   `json:"WorkingDir"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// manifest is the entry of one image in manifest.json.
type manifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Write writes the archive of spec to the file out, whole or not at all.
func Write(out string, spec Spec) (err error) {
	if err := spec.validate(); err != nil {
		return err
	}
	entries, err := walk(spec.Root, fileCapability)
	if err != nil {
		return fmt.Errorf("read the image's root: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".image-*")
	if err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	layer, digest, err := writeHashed(filepath.Join(work, "layer.tar"), func(w io.Writer) error { return writeLayer(w, entries) })
	if err != nil {
		return fmt.Errorf("write the image's layer: %w", err)
	}
	defer layer.Close()
	archive := filepath.Join(work, "archive.tar")
	file, _, err := writeHashed(archive, func(w io.Writer) error { return writeArchive(w, spec, layer, digest) })
	if err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return os.Rename(archive, out)
}

func (s Spec) validate() error {
	if len(s.Names) == 0 {
		return errors.New("an image needs a name")
	}
	for _, n := range s.Names {
		if !name.MatchString(n) {
			return fmt.Errorf("image name %q is not NAME:TAG", n)
		}
	}
	if len(s.Entrypoint) == 0 {
		return fmt.Errorf("image %s needs an entry point", s.Names[0])
	}
	// The kernel resolves it in the container, where this machine's PATH means nothing.
	if !filepath.IsAbs(s.Entrypoint[0]) {
		return fmt.Errorf("image %s: entry point %q is not an absolute path in the image", s.Names[0], s.Entrypoint[0])
	}
	target := filepath.Join(s.Root, s.Entrypoint[0])
	if _, err := os.Lstat(target); err != nil {
		return fmt.Errorf("image %s: entry point: %w", s.Names[0], err)
	}
	return nil
}

// writeHashed creates a file, lets write fill it, and returns it open at its
// beginning, with the SHA-256 of its content in hexadecimal.
func writeHashed(path string, write func(io.Writer) error) (*os.File, string, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	err = write(io.MultiWriter(file, sum))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Close())
	}
	return file, hex.EncodeToString(sum.Sum(nil)), nil
}

func writeArchive(w io.Writer, spec Spec, layer *os.File, digest string) error {
	configuration, err := json.Marshal(config{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Created:      time.Unix(0, 0).UTC(),
		Config:       process{Entrypoint: spec.Entrypoint, Env: []string{path}, WorkingDir: "/"},
		RootFS:       rootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(configuration)
	configName := hex.EncodeToString(sum[:]) + ".json"
	index, err := json.Marshal([]manifest{{Config: configName, RepoTags: spec.Names, Layers: []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	info, err := layer.Stat()
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	add := func(name string, size int64, content func() error) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		return content()
	}
	bytes := func(b []byte) func() error {
		return func() error {
			_, err := archive.Write(b)
			return err
		}
	}
	if err := add(configName, int64(len(configuration)), bytes(configuration)); err != nil {
		return err
	}
	if err := add("layer.tar", info.Size(), func() error {
		_, err := io.Copy(archive, layer)
		return err
	}); err != nil {
		return err
	}
	if err := add("manifest.json", int64(len(index)), bytes(index)); err != nil {
		return err
	}
	return archive.Close()
}
