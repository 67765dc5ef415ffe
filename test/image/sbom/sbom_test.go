package sbom

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

const isc = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY
SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER
RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT,
NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE
USE OR PERFORMANCE OF THIS SOFTWARE.
`

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLicences(t *testing.T) {
	root := tree(t, map[string]string{
		"a/LICENSE": mit, "a/license.go": "package a\n", "a/NOTICE": "Made by somebody.\n", "a/PATENTS": isc, "a/third/COPYING": isc, "a/third/x/x.go": "",
		"b/LICENSE.txt":    strings.ReplaceAll(mit, "\n", "\r\n"),
		"c/LICENSE":        "Ask us.\n",
		"d/unused/LICENSE": isc, "d/d.go": "",
		"go/LICENSE": isc, "go/src/vendor/x/x.go": "",
	})
	at := func(module, dir, sub string) Package {
		return Package{Module: module, Root: filepath.Join(root, dir), Dir: filepath.Join(root, dir, sub)}
	}
	l, err := ReadLicences([]Package{
		at("test/a", "a", "."), at("test/a", "a", "third/x"), at("test/b", "b", "."), at("test/c", "c", "."),
		at("test/d", "d", "."), at(Standard, "go", "src/vendor/x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, m := range []string{"test/a", "test/b", "test/c", "test/d", Standard} {
		got[m] = l.Expression(m)
	}
	want := map[string]string{
		"test/a": "ISC AND MIT", "test/b": "MIT", "test/c": "NOASSERTION", "test/d": "NOASSERTION", Standard: "ISC",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("licences (-want +got):\n%s", diff)
	}
	notices := string(l.Notices())
	for text, times := range map[string]int{
		"Permission is hereby granted": 1, "Permission to use": 1, "Made by somebody.": 1, "Ask us.": 1, "test/a\ntest/b\n": 1, "package a": 0,
	} {
		if n := strings.Count(notices, text); n != times {
			t.Errorf("%q stands %d times in the notices, want %d:\n%s", text, n, times, notices)
		}
	}
	if _, err := ReadLicences([]Package{{Module: "m", Root: root + "/a", Dir: root + "/b"}}); err == nil {
		t.Error("a package outside of its module: no error")
	}
}

// TestDescribe describes this test itself: a Go program with modules.
func TestDescribe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	licences, err := ReadLicences(nil)
	if err != nil {
		t.Fatal(err)
	}
	licences.add("github.com/google/go-cmp", "LICENSE", []byte(mit))
	subject := Subject{
		Program: program, File: "/headgate", Version: "v1.2.3+x", Revision: "0123abc", Platform: "linux/arm/v7",
		Created: time.Unix(1_700_000_000, 0), Licences: licences,
	}
	text, err := Describe(subject)
	if err != nil {
		t.Fatal(err)
	}
	Check(t, text)
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if want := len(info.Deps) + 2; len(d.Packages) != want {
		t.Errorf("%d packages, want %d: the program, the standard library, and its modules", len(d.Packages), want)
	}
	found := func(name string) spdxPackage {
		i := slices.IndexFunc(d.Packages, func(p spdxPackage) bool { return p.Name == name })
		if i < 0 {
			t.Fatalf("no package %s", name)
		}
		return d.Packages[i]
	}
	if p := found(info.Main.Path); p.DownloadLocation != "git+https://"+info.Main.Path+"@0123abc" || p.VersionInfo != "v1.2.3+x" ||
		p.ExternalRefs[0].Locator != "pkg:golang/"+info.Main.Path+"@v1.2.3%2Bx" || p.Purpose != "APPLICATION" {
		t.Errorf("the program: %+v", p)
	}
	if p := found(Standard); !strings.HasPrefix(info.GoVersion, "go"+p.VersionInfo) || p.VersionInfo == "" {
		t.Errorf("the standard library of %s: %+v", info.GoVersion, p)
	}
	for _, m := range info.Deps {
		p := found(m.Path)
		if m.Path == "github.com/google/go-cmp" && p.LicenseConcluded != "MIT" {
			t.Errorf("licence of %s: %s", m.Path, p.LicenseConcluded)
		}
		if p.SourceInfo != "go.sum "+m.Sum || p.VersionInfo != m.Version {
			t.Errorf("%s %s %s: %+v", m.Path, m.Version, m.Sum, p)
		}
	}
	again, err := Describe(subject)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("described again: another document, or %v", err)
	}
	if _, err := Describe(Subject{Program: []byte("#!/bin/sh\n")}); err == nil {
		t.Error("a shell script: no error")
	}
}

// Check checks a document for what SPDX 2.3 and its JSON schema ask for.
func Check(t *testing.T, text []byte) {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if problems := invalid(d); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
	// The check itself finds what is missing or wrong.
	for _, field := range []string{"spdxVersion", "documentNamespace", "creationInfo", "SPDXID"} {
		kept := d[field]
		delete(d, field)
		if len(invalid(d)) == 0 {
			t.Errorf("without %s nothing is found", field)
		}
		d[field] = kept
	}
}

var (
	spdxID    = regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`)
	licenceID = regexp.MustCompile(`^(NOASSERTION|[A-Za-z0-9.-]+( AND [A-Za-z0-9.-]+)*)$`)
	location  = regexp.MustCompile(`^(NOASSERTION|https://\S+|git\+https://\S+@[0-9a-f]+)$`)
	instant   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	creator   = regexp.MustCompile(`^(Person|Organization|Tool): \S`)
	packageRL = regexp.MustCompile(`^pkg:golang/[a-z0-9._~%/-]+@[A-Za-z0-9._~%-]+$`)
)

// invalid returns what is wrong with a document. Source: SPDX 2.3, the tables of
// mandatory fields of sections 6, 7 and 11, and the "required" of its schema.
func invalid(d map[string]any) []string {
	var problems []string
	want := func(what string, ok bool) {
		if !ok {
			problems = append(problems, "wrong or missing: "+what)
		}
	}
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	list := func(m map[string]any, key string) []map[string]any {
		var all []map[string]any
		items, _ := m[key].([]any)
		for _, i := range items {
			e, ok := i.(map[string]any)
			want(key, ok)
			all = append(all, e)
		}
		return all
	}
	want("spdxVersion", text(d, "spdxVersion") == "SPDX-2.3")
	want("dataLicense", text(d, "dataLicense") == "CC0-1.0")
	want("SPDXID", text(d, "SPDXID") == "SPDXRef-DOCUMENT")
	want("name", text(d, "name") != "")
	want("documentNamespace", regexp.MustCompile(`^https://[^\s#]+$`).MatchString(text(d, "documentNamespace")))
	info, _ := d["creationInfo"].(map[string]any)
	want("created", instant.MatchString(text(info, "created")))
	creators, _ := info["creators"].([]any)
	want("creators", len(creators) > 0)
	for _, c := range creators {
		s, _ := c.(string)
		want("creator", creator.MatchString(s))
	}
	ids := map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range list(d, "packages") {
		name := text(p, "name")
		want("name of a package", name != "")
		want("SPDXID of "+name, spdxID.MatchString(text(p, "SPDXID")) && !ids[text(p, "SPDXID")])
		ids[text(p, "SPDXID")] = true
		want("downloadLocation of "+name, location.MatchString(text(p, "downloadLocation")))
		analyzed, ok := p["filesAnalyzed"].(bool)
		want("filesAnalyzed of "+name, ok && !analyzed)
		want("licenseConcluded of "+name, licenceID.MatchString(text(p, "licenseConcluded")))
		want("licenseDeclared of "+name, licenceID.MatchString(text(p, "licenseDeclared")))
		want("copyrightText of "+name, text(p, "copyrightText") != "")
		want("primaryPackagePurpose of "+name, slices.Contains([]string{"APPLICATION", "LIBRARY"}, text(p, "primaryPackagePurpose")))
		for _, c := range list(p, "checksums") {
			want("checksum of "+name, text(c, "algorithm") == "SHA256" && regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(text(c, "checksumValue")))
		}
		refs := list(p, "externalRefs")
		want("externalRefs of "+name, len(refs) > 0)
		for _, r := range refs {
			want("externalRef of "+name+" "+text(r, "referenceLocator"), text(r, "referenceCategory") == "PACKAGE-MANAGER" &&
				text(r, "referenceType") == "purl" && packageRL.MatchString(text(r, "referenceLocator")))
		}
	}
	described := false
	for _, r := range list(d, "relationships") {
		from, to := text(r, "spdxElementId"), text(r, "relatedSpdxElement")
		want("relationship of "+from+" and "+to, ids[from] && ids[to])
		want("type of relationship", slices.Contains([]string{"DESCRIBES", "DEPENDS_ON"}, text(r, "relationshipType")))
		described = described || from == "SPDXRef-DOCUMENT" && text(r, "relationshipType") == "DESCRIBES"
	}
	want("what is described", described)
	return problems
}
