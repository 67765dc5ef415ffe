package sbom

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Package is a directory of source that went into the program.
type Package struct {
	Module string // its module's path; [Standard] for the standard library
	Root   string // its module's directory
	Dir    string // its own
}

// Standard is the name of the standard library as a module.
const Standard = "stdlib"

// licenceFile matches the names of files that say under which terms what is in
// a directory, and below it, may be used.
var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([-._].*)?$`)

// grant matches those of them that are licences.
var grant = regexp.MustCompile(`(?i)^(licen[sc]e|copying)`)

// sourceFile matches the names of what only looks like one.
var sourceFile = regexp.MustCompile(`(?i)\.(go|s|py|sh|json|ya?ml)$`)

// Licences are the terms of modules.
type Licences struct {
	ids   map[string][]string // module to SPDX identifiers, sorted
	texts map[string][]string // text to the modules that have it
}

// ReadLicences reads the licence files in the directories of packages and above,
// up to their modules' roots.
func ReadLicences(packages []Package) (Licences, error) {
	l := Licences{ids: make(map[string][]string), texts: make(map[string][]string)}
	seen := make(map[string]bool)
	for _, p := range packages {
		root, dir := filepath.Clean(p.Root), filepath.Clean(p.Dir)
		if p.Module == Standard {
			dir = root // the toolchain's own licence holds for what it vendors, too
		}
		if dir != root && !strings.HasPrefix(dir, root+string(filepath.Separator)) {
			return Licences{}, fmt.Errorf("package in %s is not below its module, %s", dir, root)
		}
		for ; ; dir = filepath.Dir(dir) {
			if !seen[dir] {
				seen[dir] = true
				if err := l.readDir(p.Module, dir); err != nil {
					return Licences{}, err
				}
			}
			if dir == root {
				break
			}
		}
	}
	return l, nil
}

func (l Licences) readDir(module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for the licence of %s: %w", module, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || sourceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", module, err)
		}
		l.add(module, e.Name(), text)
	}
	return nil
}

// add takes a text over. Promises about patents and notices are passed on, but
// are no licences by SPDX's list.
func (l Licences) add(module, file string, text []byte) {
	key := string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	if !slices.Contains(l.texts[key], module) {
		l.texts[key] = append(l.texts[key], module)
	}
	if !grant.MatchString(file) {
		return
	}
	for _, id := range identify(text) {
		if !slices.Contains(l.ids[module], id) {
			l.ids[module] = append(l.ids[module], id)
			slices.Sort(l.ids[module])
		}
	}
}

// covered is how much of a text must be known licences, in percent, before they
// are taken to be all that it says. It is what pkg.go.dev asks for.
const covered = 75

// identify returns the SPDX identifiers of the licences that text consists of.
func identify(text []byte) []string {
	found := licensecheck.Scan(text)
	if found.Percent < covered {
		return nil
	}
	var ids []string
	for _, m := range found.Match {
		if !m.IsURL && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Expression returns the terms of a module as an SPDX expression, NOASSERTION
// when they can't be told.
func (l Licences) Expression(module string) string {
	if ids := l.ids[module]; len(ids) > 0 {
		return strings.Join(ids, " AND ")
	}
	return noAssertion
}

// Known tells whether there is an expression for a module.
func (l Licences) Known(module string) bool { return len(l.ids[module]) > 0 }

// Notices returns the texts of all licences, as they ask to be passed on with a
// program: each once, after the modules that it is for.
func (l Licences) Notices() []byte {
	var b bytes.Buffer
	b.WriteString("Headgate contains the following software, each under the terms below its name.\n")
	texts := slices.SortedFunc(maps.Keys(l.texts), func(a, c string) int {
		return cmp.Or(slices.Compare(sorted(l.texts[a]), sorted(l.texts[c])), cmp.Compare(a, c))
	})
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(sorted(l.texts[text]), "\n"), rule, text)
	}
	return b.Bytes()
}

var rule = strings.Repeat("=", 80)

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
