package release

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const repositoryURL = "https://github.com/headgate/headgate"

// labels are the image's labels, and the annotations of its manifests. licence
// is an SPDX expression, or empty when the repository has none.
func (s Source) labels(licence string) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":         "Headgate",
		"org.opencontainers.image.description":   "An edge ingress controller for the Gateway API",
		"org.opencontainers.image.source":        repositoryURL,
		"org.opencontainers.image.documentation": repositoryURL + "/tree/main/docs",
		"org.opencontainers.image.version":       s.Version,
		"org.opencontainers.image.created":       s.Created.Format(time.RFC3339),
	}
	if s.Revision != "" {
		l["org.opencontainers.image.revision"] = s.Revision
	}
	if licence != "" {
		l["org.opencontainers.image.licenses"] = licence
	}
	return l
}

// assemble makes the image of one platform out of its files.
func assemble(s Source, p Platform, files []file, labels map[string]string) (v1.Image, error) {
	var layer bytes.Buffer
	if err := writeLayer(&layer, files, s.Created); err != nil {
		return nil, fmt.Errorf("write the layer for %s: %w", p, err)
	}
	if size := layer.Len(); size > MaxSize {
		return nil, fmt.Errorf("the image for %s has %d bytes, more than %d", p, size, MaxSize)
	}
	// The opener is called for the digests and for the content; the bytes are there.
	compressed, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil },
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress the layer for %s: %w", p, err)
	}
	platform := p.descriptor()
	base, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: s.Created},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config: v1.Config{
			Entrypoint: []string{"/" + programPath},
			Env:        []string{"PATH=/"},
			User:       strconv.Itoa(User) + ":" + strconv.Itoa(User),
			WorkingDir: "/",
			Labels:     labels,
		},
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: compressed, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: s.Created}, CreatedBy: "make image"},
	})
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, labels).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("the image for %s lost its kind with its annotations", p)
	}
	return annotated, nil
}

// join makes one index of the images, in the order of platforms.
func join(images []Image, labels map[string]string) (v1.ImageIndex, error) {
	var parts []mutate.IndexAddendum
	for _, i := range slices.Clone(images) {
		parts = append(parts, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: i.Platform.descriptor()}})
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), parts...)
	annotated, ok := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("the index of %d images lost its kind with its annotations", len(images))
	}
	return annotated, nil
}
