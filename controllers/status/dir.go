package status

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// marker is the first line of every file that a Dir writes. Files without it are
// never touched.
const marker = "# Written by Headgate. Changes are lost.\n"

// Dir keeps one file for each object in a directory: the object's status as a
// cluster would show it. A file is replaced whole, and only when the status
// changed; the files of objects that are gone are removed. It is for one
// goroutine.
type Dir struct {
	path string
	now  func() time.Time
	have map[string]*entry // by file name; nil before the first Write
}

// entry is a file as it was written last.
type entry struct {
	subject any // the report's pointer: the same one means no change
	status  *document
	text    []byte
}

// document is what a file says.
type document struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metadata `json:"metadata"`
	Status          content  `json:"status"`
}

type metadata struct {
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// content is the status of any kind.
type content struct {
	Addresses         []gatewayv1.GatewayStatusAddress `json:"addresses,omitempty"`
	Ancestors         []gatewayv1.PolicyAncestorStatus `json:"ancestors,omitempty"`
	Conditions        []metav1.Condition               `json:"conditions,omitempty"`
	Listeners         []gatewayv1.ListenerStatus       `json:"listeners,omitempty"`
	Parents           []gatewayv1.RouteParentStatus    `json:"parents,omitempty"`
	SupportedFeatures []gatewayv1.SupportedFeature     `json:"supportedFeatures,omitempty"`
}

// NewDir returns a Dir that writes to path and makes it when there is something
// to write. now is the clock for the times of conditions.
func NewDir(path string, now func() time.Time) *Dir { return &Dir{path: path, now: now} }

// Write brings the directory up to date with the report.
func (d *Dir) Write(_ context.Context, r *compile.Report) error {
	if d.have == nil {
		if err := d.load(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	want, api := make(map[string]bool), gatewayv1.GroupVersion.String()
	var errs []error
	put := func(group, kind, namespace, name string, generation int64, subject any, c content) {
		file := fileName(kind, namespace, name)
		want[file] = true
		doc := &document{
			TypeMeta: metav1.TypeMeta{APIVersion: group, Kind: kind},
			Metadata: metadata{name, namespace, generation},
			Status:   c,
		}
		errs = append(errs, d.put(file, subject, doc))
	}
	for _, x := range r.Classes {
		put(api, "GatewayClass", "", x.Name, x.Generation, x, content{Conditions: x.Status.Conditions, SupportedFeatures: x.Status.SupportedFeatures})
	}
	for _, x := range r.Gateways {
		put(api, "Gateway", x.Namespace, x.Name, x.Generation, x,
			content{Addresses: x.Status.Addresses, Conditions: x.Status.Conditions, Listeners: x.Status.Listeners})
	}
	for _, x := range r.Routes {
		put(api, x.Kind, x.Namespace, x.Name, x.Generation, x, content{Parents: x.Parents})
	}
	for _, x := range r.Policies {
		put(v1alpha1.GroupVersion.String(), x.Kind, x.Namespace, x.Name, x.Generation, x, content{Ancestors: x.Ancestors})
	}
	for file := range d.have {
		if want[file] {
			continue
		}
		if err := os.Remove(filepath.Join(d.path, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a stale status: %w", err))
			continue
		}
		delete(d.have, file)
	}
	return errors.Join(errs...)
}

// fileName names an object's file. An underscore is in no name, so two objects
// never share a file; names that are too long for a file system are cut and told
// apart by a hash.
func fileName(kind, namespace, name string) string {
	const most = 200
	s := strings.ToLower(kind) + "_" + name
	if namespace != "" {
		s = strings.ToLower(kind) + "_" + namespace + "_" + name
	}
	if len(s) > most {
		sum := sha256.Sum256([]byte(s))
		s = s[:most] + "_" + hex.EncodeToString(sum[:6])
	}
	return s + ".yaml"
}

// load reads the files of an earlier process, for the times in them.
func (d *Dir) load() error {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read status: %w", err)
	}
	have := make(map[string]*entry)
	for _, e := range entries {
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) != ".yaml" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(d.path, e.Name()))
		if err != nil || !bytes.HasPrefix(text, []byte(marker)) {
			continue
		}
		doc := &document{}
		if yaml.Unmarshal(text, doc) != nil {
			doc = nil // only its times are lost
		}
		have[e.Name()] = &entry{status: doc, text: text}
	}
	d.have = have
	return nil
}

// put writes a file when it says something new.
func (d *Dir) put(file string, subject any, doc *document) error {
	last := d.have[file]
	if last != nil && last.subject == subject {
		return nil
	}
	var was content
	if last != nil && last.status != nil {
		was = last.status.Status
	}
	doc.Status = doc.Status.timed(was, metav1.NewTime(d.now().UTC().Truncate(time.Second)))
	body, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	text := append([]byte(marker), body...)
	if last == nil || !bytes.Equal(last.text, text) {
		if err := replace(filepath.Join(d.path, file), text); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
	}
	d.have[file] = &entry{subject, doc, text}
	return nil
}

// timed returns a copy whose conditions say since when they hold: since was, where
// their status is the same.
func (c content) timed(was content, now metav1.Time) content {
	c.Conditions = timed(c.Conditions, was.Conditions, now)
	c.Listeners = append([]gatewayv1.ListenerStatus(nil), c.Listeners...)
	for i, l := range c.Listeners {
		var old []metav1.Condition
		for _, o := range was.Listeners {
			if o.Name == l.Name {
				old = o.Conditions
			}
		}
		c.Listeners[i].Conditions = timed(l.Conditions, old, now)
	}
	c.Parents = append([]gatewayv1.RouteParentStatus(nil), c.Parents...)
	for i, p := range c.Parents {
		var old []metav1.Condition
		for _, o := range was.Parents {
			if sameParent(o.ParentRef, p.ParentRef) {
				old = o.Conditions
			}
		}
		c.Parents[i].Conditions = timed(p.Conditions, old, now)
	}
	c.Ancestors = append([]gatewayv1.PolicyAncestorStatus(nil), c.Ancestors...)
	for i, a := range c.Ancestors {
		var old []metav1.Condition
		for _, o := range was.Ancestors {
			if sameParent(o.AncestorRef, a.AncestorRef) {
				old = o.Conditions
			}
		}
		c.Ancestors[i].Conditions = timed(a.Conditions, old, now)
	}
	return c
}

func timed(cs, was []metav1.Condition, now metav1.Time) []metav1.Condition {
	out := append([]metav1.Condition(nil), cs...)
	for i, c := range out {
		out[i].LastTransitionTime = now
		for _, o := range was {
			if o.Type == c.Type && o.Status == c.Status && !o.LastTransitionTime.IsZero() {
				out[i].LastTransitionTime = o.LastTransitionTime
			}
		}
	}
	return out
}

func sameParent(a, b gatewayv1.ParentReference) bool {
	return a.Name == b.Name && deref(a.Namespace) == deref(b.Namespace) && deref(a.SectionName) == deref(b.SectionName) && deref(a.Port) == deref(b.Port)
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// replace writes a file as a whole: a reader sees the old or the new one.
func replace(path string, text []byte) error {
	dir, name := filepath.Split(path)
	tmp, err := os.CreateTemp(dir, "."+name+"*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
