package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/holdoff"
)

// Options configure a [Source].
type Options struct {
	// Compile is passed on in the input. TrustEndpoints is always set.
	Compile compile.Options
	// StatusDir is left out when it is in the directory; default "status" in it.
	StatusDir string
	// Unchecked leaves out the checks that the CRDs of Gateway API make, as a
	// cluster with other CRDs would.
	Unchecked bool
	// Holdoff bounds how soon a change is signalled.
	Holdoff holdoff.Options
}

// Source reads a directory. Its methods may be called from several goroutines.
type Source struct {
	dir  string
	opts Options

	mu       sync.Mutex
	files    map[string]*file
	objects  map[objectKey]*known
	implicit map[string]*corev1.Namespace

	unwatched error // why changes somewhere are not seen
}

// file is what is known of one file.
type file struct {
	docs []placed
	good []placed // of the last version without a fault; nil when there was none
}

// placed is a document at its place.
type placed struct {
	line int // of its first line in the file, from 0
	*document
}

// objectKey names an object.
type objectKey struct{ kind, namespace, name string }

// known is an object as it was given out.
type known struct {
	meta       metav1.Object
	json       []byte
	generation int64
	path       string // of the file
	line       int    // of its document, from 0
	doc        *document
	at         string // its path in the document
}

// Open returns a source for the directory, which must exist. It reads nothing
// yet.
func Open(dir string, o Options) (*Source, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the configuration directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open the configuration directory: %s is not a directory: name the one that it is in", dir)
	}
	if o.StatusDir == "" {
		o.StatusDir = filepath.Join(dir, "status")
	}
	o.StatusDir = inside(dir, o.StatusDir)
	o.Compile.TrustEndpoints = true
	return &Source{
		dir: filepath.Clean(dir), opts: o,
		files:    make(map[string]*file),
		objects:  make(map[objectKey]*known),
		implicit: make(map[string]*corev1.Namespace),
	}, nil
}

// inside returns path in the form that it has when dir is walked, if it is in dir.
func inside(dir, path string) string {
	absDir, err1 := filepath.Abs(dir)
	absPath, err2 := filepath.Abs(path)
	if err1 != nil || err2 != nil {
		return filepath.Clean(path)
	}
	if rel, err := filepath.Rel(absDir, absPath); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(dir, rel)
	}
	return absPath
}

// Input reads the directory and returns its objects, and what is wrong with its
// files. A file with an error counts as in its last version without one; when
// there was none, its faultless objects count. Objects that say the same as
// before are the same pointers.
func (s *Source) Input() (compile.Input, []compile.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := walk(s.dir, s.opts.StatusDir)
	problems := t.problems
	if s.unwatched != nil {
		problems = append(problems, compile.Problem{
			Severity: compile.Error, File: s.dir, Reason: "Unwatched", Message: fmt.Sprintf("changes may not be seen: %v", s.unwatched),
		})
	}
	files := make(map[string]*file, len(t.files))
	for path, text := range t.files {
		f, ps := s.read(path, text)
		files[path] = f
		problems = append(problems, ps...)
	}
	for path, f := range s.files {
		if files[path] == nil && under(path, t.unread) {
			files[path] = f
		}
	}
	s.files = files
	in, doubles := s.collect()
	problems = append(problems, doubles...)
	for _, p := range lint(&in) {
		s.locate(&p)
		problems = append(problems, p)
	}
	compile.SortProblems(problems)
	return in, problems
}

// under tells whether the path is one of the others or below one.
func under(path string, others []string) bool {
	return slices.ContainsFunc(others, func(o string) bool {
		return path == o || strings.HasPrefix(path, o+string(filepath.Separator))
	})
}

// read reads a file's documents, those that it had before without decoding them
// again.
func (s *Source) read(path, text string) (*file, []compile.Problem) {
	f := &file{}
	had := make(map[string]*document)
	if old := s.files[path]; old != nil {
		f.good = old.good
		for _, p := range old.docs {
			had[p.text] = p.document
		}
	}
	broken := false
	for _, p := range split(text) {
		d := had[p.text]
		if d == nil {
			d = read(p.text, !s.opts.Unchecked)
		}
		broken = broken || d.broken()
		f.docs = append(f.docs, placed{p.line, d})
	}
	if !broken {
		f.good = f.docs
	}
	var problems []compile.Problem
	for _, p := range f.docs {
		for _, x := range p.faults {
			problem := x.problem(path, p)
			if x.severity == compile.Error && broken && f.good != nil {
				problem.Message += "; the last version of the file without an error is in force"
			}
			problems = append(problems, problem)
		}
	}
	return f, problems
}

// problem tells a fault with its place.
func (x fault) problem(path string, p placed) compile.Problem {
	problem := compile.Problem{Severity: x.severity, File: path, Field: x.field, Reason: "Refused", Message: x.message}
	at := x.path
	if x.object != nil {
		problem.Kind = x.object.kind.name
		problem.Namespace, problem.Name = x.object.meta.GetNamespace(), x.object.meta.GetName()
		at = join(x.object.path, x.field)
	}
	line := x.line
	if at != "" || x.object != nil || line == 0 {
		line = lineAt(p.text, at)
	}
	problem.Line = p.line + line + 1
	return problem
}

// collect makes an input of the files in force.
func (s *Source) collect() (compile.Input, []compile.Problem) {
	in := compile.Input{Options: s.opts.Compile}
	var problems []compile.Problem
	now := make(map[objectKey]*known)
	paths := make([]string, 0, len(s.files))
	for path := range s.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		docs := s.files[path].good
		if docs == nil {
			docs = s.files[path].docs
		}
		for _, p := range docs {
			for _, o := range p.objects {
				key := objectKey{o.kind.name, o.meta.GetNamespace(), o.meta.GetName()}
				k := &known{path: path, line: p.line, doc: p.document, at: o.path}
				if first := now[key]; first != nil {
					problems = append(problems, double(o, k, first))
					continue
				}
				k.take(o, s.objects[key])
				now[key] = k
				o.kind.add(&in, k.meta)
			}
		}
	}
	s.objects = now
	s.namespaces(&in)
	compile.Sort(in.Classes)
	compile.Sort(in.Gateways)
	compile.Sort(in.HTTPRoutes)
	compile.Sort(in.Grants)
	compile.Sort(in.Namespaces)
	compile.Sort(in.Services)
	compile.Sort(in.EndpointSlices)
	compile.Sort(in.Secrets)
	compile.Sort(in.ConfigMaps)
	compile.Sort(in.BackendPolicies)
	compile.Sort(in.Parameters)
	return in, problems
}

// take fills k in with an object: the one that was given out before when it says
// the same, else o with the next generation.
func (k *known) take(o *object, was *known) {
	k.meta, k.json, k.generation = o.meta, o.json, 1
	if was != nil {
		if bytes.Equal(was.json, o.json) {
			k.meta, k.generation = was.meta, was.generation
			return
		}
		k.generation = was.generation + 1
	}
	// Whoever has the object already keeps it as it was.
	if o.meta.GetGeneration() != 0 && o.meta.GetGeneration() != k.generation {
		k.meta = o.kind.copy(o.meta)
	}
	k.meta.SetGeneration(k.generation)
}

// double tells that an object is there twice.
func double(o *object, k, first *known) compile.Problem {
	return compile.Problem{
		Severity: compile.Error, Kind: o.kind.name, Namespace: o.meta.GetNamespace(), Name: o.meta.GetName(),
		File: k.path, Line: k.place(""), Reason: "Duplicate",
		Message: fmt.Sprintf("is also in %s:%d, which counts; remove one", first.path, first.place("")),
	}
}

// namespaces adds the namespaces that objects are in and that no file declares.
func (s *Source) namespaces(in *compile.Input) {
	implicit := make(map[string]*corev1.Namespace)
	for key := range s.objects {
		if key.namespace == "" || s.objects[objectKey{"Namespace", "", key.namespace}] != nil || implicit[key.namespace] != nil {
			continue
		}
		ns := s.implicit[key.namespace]
		if ns == nil {
			ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.namespace, Labels: map[string]string{nameLabel: key.namespace}}}
		}
		implicit[key.namespace] = ns
		in.Namespaces = append(in.Namespaces, ns)
	}
	s.implicit = implicit
}

// Locate fills in the file and the line of a problem of an object, as exactly as
// its field can be found.
func (s *Source) Locate(p *compile.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locate(p)
}

func (s *Source) locate(p *compile.Problem) {
	if k := s.objects[objectKey{p.Kind, p.Namespace, p.Name}]; k != nil && p.File == "" {
		p.File, p.Line = k.path, k.place(p.Field)
	}
}

// place returns the line, from 1, of a field of the object.
func (k *known) place(field string) int {
	return k.line + lineAt(k.doc.text, join(k.at, field)) + 1
}
