// Package release makes Headgate's container images without a container tool:
// it builds the program for each platform, describes it by package sbom, and
// writes archives that container runtimes import. The same commit, built by the
// same toolchain, always gives the same bytes. The command above it is its
// command line.
package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/headgate/headgate/test/image/sbom"
)

// MaxSize is how large the image of one platform may be, uncompressed, in bytes.
const MaxSize = 60_000_000

// Image is the image of one platform.
type Image struct {
	Platform   Platform
	Archive    string // path of the archive
	SBOM       string // path of the SPDX document
	Digest     string // of the image's manifest, sha256:...
	Size       int64  // of the unpacked files, in bytes
	Compressed int64  // of what a registry would transfer, in bytes

	image v1.Image
}

// Release is what one run has made.
type Release struct {
	Reference string // the images' name with its tag
	Images    []Image
	Archive   string // path of the archive with all of them, empty for one platform
	Digest    string // of the index in it
}

// Build makes the images of platforms and writes into the directory out, for
// each of them, an archive and its SPDX document, an archive of all when there
// are several, and SHA256SUMS of these files. Archives of other versions stay.
func Build(ctx context.Context, s Source, platforms []Platform, out string) (Release, error) {
	if len(platforms) == 0 {
		return Release{}, errors.New("an image needs a platform")
	}
	r := Release{Reference: s.Reference()}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return r, err
	}
	var labels map[string]string
	for _, p := range platforms {
		parts, err := prepare(ctx, s, p)
		if err != nil {
			return r, err
		}
		labels = s.labels(parts.licence)
		image, err := assemble(s, p, parts.files, labels)
		if err != nil {
			return r, err
		}
		i, err := s.write(p, image, parts, filepath.Join(out, "headgate-"+Tag(s.Version)+"-"+p.file()))
		if err != nil {
			return r, err
		}
		r.Images = append(r.Images, i)
	}
	if len(r.Images) > 1 {
		index, err := join(r.Images, labels)
		if err != nil {
			return r, err
		}
		digest, err := index.Digest()
		if err != nil {
			return r, err
		}
		r.Digest = digest.String()
		r.Archive = filepath.Join(out, "headgate-"+Tag(s.Version)+".tar")
		if err := writeFile(r.Archive, func(w io.Writer) error { return writeIndexArchive(w, s, index, r.Images) }); err != nil {
			return r, err
		}
	}
	return r, r.writeSums(filepath.Join(out, "SHA256SUMS"))
}

// WriteRoot makes the image's files of one platform in the directory root, for
// builds that have their own way to make an image of a directory.
func WriteRoot(ctx context.Context, s Source, p Platform, root string) error {
	parts, err := prepare(ctx, s, p)
	if err != nil {
		return err
	}
	return writeRoot(root, parts.files, s.Created)
}

// parts are what an image is made of.
type parts struct {
	files   []file
	bom     []byte
	licence string // of Headgate itself, empty when there is none
}

// prepare builds the program for a platform and describes it.
func prepare(ctx context.Context, s Source, p Platform) (_ parts, err error) {
	work, err := os.MkdirTemp("", "headgate-image-*")
	if err != nil {
		return parts{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	executable := filepath.Join(work, "headgate")
	if err := compile(ctx, s, p, executable); err != nil {
		return parts{}, err
	}
	program, err := os.ReadFile(executable)
	if err != nil {
		return parts{}, err
	}
	packages, err := packages(ctx, s, p)
	if err != nil {
		return parts{}, err
	}
	licences, err := sbom.ReadLicences(packages)
	if err != nil {
		return parts{}, err
	}
	bom, err := sbom.Describe(sbom.Subject{
		Program: program, File: "/" + programPath, Version: s.Version, Revision: s.Revision,
		Platform: p.String(), Created: s.Created, Licences: licences,
	})
	if err != nil {
		return parts{}, fmt.Errorf("describe the program for %s: %w", p, err)
	}
	made := parts{files: contents(program, bom, licences.Notices()), bom: bom}
	if licences.Known(modulePath) {
		made.licence = licences.Expression(modulePath)
	}
	return made, nil
}

// modulePath is Headgate's own module.
const modulePath = "github.com/headgate/headgate"

// write writes an image's archive and description. base is the path of both
// without an ending.
func (s Source) write(p Platform, image v1.Image, made parts, base string) (Image, error) {
	digest, err := image.Digest()
	if err != nil {
		return Image{}, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return Image{}, err
	}
	i := Image{Platform: p, Archive: base + ".tar", SBOM: base + ".spdx.json", Digest: digest.String(), image: image}
	for _, f := range made.files {
		i.Size += int64(len(f.content))
	}
	for _, l := range manifest.Layers {
		i.Compressed += l.Size
	}
	if err := writeFile(i.Archive, func(w io.Writer) error { return writeImageArchive(w, s, i) }); err != nil {
		return Image{}, err
	}
	return i, writeFile(i.SBOM, func(w io.Writer) error {
		_, err := w.Write(made.bom)
		return err
	})
}

// writeSums writes the digests of the release's files, as sha256sum reads them.
func (r Release) writeSums(out string) error {
	var names []string
	for _, i := range r.Images {
		names = append(names, i.Archive, i.SBOM)
	}
	if r.Archive != "" {
		names = append(names, r.Archive)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		b.WriteString(hex.EncodeToString(sum[:]) + "  " + filepath.Base(name) + "\n")
	}
	return writeFile(out, func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	})
}
