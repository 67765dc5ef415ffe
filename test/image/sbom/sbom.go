// Package sbom describes a Go program: which modules it is made of, read from
// the program itself, and under which licences they are. Package release puts
// the description, in SPDX's JSON, and the licences' texts into the image.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

// Subject is the program that is described.
type Subject struct {
	Program  []byte    // the executable itself
	File     string    // its absolute path in the image
	Version  string    // of the program, which it does not know by its build information
	Revision string    // commit; may be empty
	Platform string    // as in linux/arm/v7
	Created  time.Time // of the document
	Licences Licences
}

// Describe returns the description as an SPDX 2.3 document in JSON. The same
// subject gives the same bytes.
func Describe(s Subject) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(s.Program))
	if err != nil {
		return nil, fmt.Errorf("read the program's build information: %w", err)
	}
	if info.Main.Path == "" {
		return nil, errors.New("the program's build information names no module")
	}
	sum := sha256.Sum256(s.Program)
	digest := hex.EncodeToString(sum[:])
	main := s.program(info, digest)
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
		Name: "headgate " + s.Version + " " + s.Platform,
		// It must be unique to the document: the program's bytes are.
		DocumentNamespace: "https://" + info.Main.Path + "/sbom/" + url.PathEscape(s.Version) + "/" + s.Platform + "/" + digest,
		CreationInfo: creationInfo{
			Created: s.Created.UTC().Format(time.RFC3339), Creators: []string{"Organization: Headgate", "Tool: headgate-image"},
		},
		Packages:      []spdxPackage{main},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", main.SPDXID}},
	}
	d.depend(main, s.toolchain(info.GoVersion))
	for _, m := range info.Deps {
		p, err := s.module(m)
		if err != nil {
			return nil, err
		}
		d.depend(main, p)
	}
	text, err := json.MarshalIndent(d, "", " ")
	return append(text, '\n'), err
}

func (d *document) depend(main, on spdxPackage) {
	d.Packages = append(d.Packages, on)
	d.Relationships = append(d.Relationships, relationship{main.SPDXID, "DEPENDS_ON", on.SPDXID})
}

func (s Subject) program(info *debug.BuildInfo, digest string) spdxPackage {
	p := spdxPackage{
		Name: info.Main.Path, SPDXID: id(info.Main.Path, s.Version), VersionInfo: s.Version,
		PackageFileName: s.File, Supplier: "Organization: Headgate", DownloadLocation: noAssertion,
		Checksums:        []checksum{{"SHA256", digest}},
		LicenseConcluded: s.Licences.Expression(info.Main.Path), LicenseDeclared: s.Licences.Expression(info.Main.Path),
		CopyrightText: noAssertion, Purpose: "APPLICATION",
		ExternalRefs: []externalRef{purl(info.Main.Path, s.Version)},
	}
	if s.Revision != "" {
		p.DownloadLocation = "git+https://" + info.Main.Path + "@" + s.Revision
	}
	var settings []string
	for _, b := range info.Settings {
		settings = append(settings, b.Key+"="+b.Value)
	}
	p.SourceInfo = "built by " + info.GoVersion + " with " + strings.Join(settings, " ")
	return p
}

// toolchain describes the standard library and the runtime, which are of the
// toolchain's version: go1.26.8, perhaps with a remark after a space or a dash.
func (s Subject) toolchain(version string) spdxPackage {
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "go"), " ")
	p := s.library(Standard, number)
	p.DownloadLocation = "https://go.dev/dl/go" + number + ".src.tar.gz"
	p.Supplier = "Organization: The Go Authors"
	return p
}

func (s Subject) module(m *debug.Module) (spdxPackage, error) {
	name := m.Path // licences are known by what the source imports
	if m.Replace != nil {
		m = m.Replace
	}
	p := s.library(m.Path, m.Version)
	p.LicenseConcluded, p.LicenseDeclared = s.Licences.Expression(name), s.Licences.Expression(name)
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return p, fmt.Errorf("module %s: %w; it can't be described when it is replaced by a directory", m.Path, err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return p, fmt.Errorf("module %s: %w", m.Path, err)
	}
	p.DownloadLocation = "https://proxy.golang.org/" + path + "/@v/" + version + ".zip"
	if m.Sum != "" {
		// Not a checksum of SPDX's: it is the hash of a list of the files' hashes,
		// and no file that can be downloaded has it.
		p.SourceInfo = "go.sum " + m.Sum
	}
	return p, nil
}

func (s Subject) library(path, version string) spdxPackage {
	return spdxPackage{
		Name: path, SPDXID: id(path, version), VersionInfo: version,
		LicenseConcluded: s.Licences.Expression(path), LicenseDeclared: s.Licences.Expression(path),
		CopyrightText: noAssertion, Purpose: "LIBRARY",
		ExternalRefs: []externalRef{purl(path, version)},
	}
}

// purl returns the package URL of a module. Source: the purl specification,
// type golang: names are in lower case.
func purl(path, version string) externalRef {
	var segments []string
	for segment := range strings.SplitSeq(strings.ToLower(path), "/") {
		segments = append(segments, url.PathEscape(segment))
	}
	locator := "pkg:golang/" + strings.Join(segments, "/") + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	return externalRef{"PACKAGE-MANAGER", "purl", locator}
}

// foreign is what an SPDX identifier can't have.
var foreign = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

func id(path, version string) string {
	return "SPDXRef-" + foreign.ReplaceAllString(path+"-"+version, "-")
}
