package admin

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// pages answers the requests that the guard let through.
type pages struct {
	Options
	mux *http.ServeMux
}

// endpoint is one line of the index page.
type endpoint struct {
	Path  string
	Text  string
	serve http.HandlerFunc
}

func newPages(o Options) http.Handler {
	p := &pages{Options: o, mux: http.NewServeMux()}
	metrics := promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // what can be shown is shown
		MaxRequestsInFlight: 3,
		Timeout:             10 * time.Second,
	})
	if o.MetricsOnly {
		p.mux.Handle("/metrics", metrics)
		return p.mux
	}
	endpoints := []endpoint{
		{"/healthz", "is the process alive?", p.health},
		{"/readyz", "does it serve? 503 and why, when not", p.ready},
		{"/metrics", "metrics in Prometheus' text format", metrics.ServeHTTP},
		{"/debug/snapshot", "what is served, as JSON, without secrets", p.snapshot},
		{"/debug/loops", "the event loops' counters, as JSON", p.loops},
		{"/debug/clusters", "the upstreams: pool, pressure and adaptive timeout, as JSON", p.clusters},
		{"/debug/stages", "the pipeline's stages as measured, beside the model, as JSON", p.stages},
		{"/debug/pprof/", "profiles of the Go runtime", pprof.Index},
	}
	for _, e := range endpoints {
		p.mux.HandleFunc(e.Path, e.serve)
	}
	// pprof.Index knows the runtime's named profiles only.
	p.mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	p.mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	p.mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	p.mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	p.mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// An error is the client's going away.
		_ = indexPage.Execute(w, map[string]any{"Version": o.Version, "Endpoints": endpoints})
	})
	return p.mux
}

var indexPage = template.Must(template.New("index").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Headgate</title>
<style>
body { font: 16px/1.5 sans-serif; margin: 2em; max-width: 45em; color: #222; background: #fff; }
td { padding: 0 2em 0 0; vertical-align: top; }
</style>
</head>
<body>
<h1>Headgate{{with .Version}} {{.}}{{end}}</h1>
<table>
{{- range .Endpoints}}
<tr><td><a href="{{.Path}}">{{.Path}}</a></td><td>{{.Text}}</td></tr>
{{- end}}
</table>
</body>
</html>
`))

func (p *pages) health(w http.ResponseWriter, _ *http.Request) { text(w, "ok") }

func (p *pages) ready(w http.ResponseWriter, _ *http.Request) {
	if err := p.DataPlane.Ready(); err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	text(w, "ready")
}

func (p *pages) snapshot(w http.ResponseWriter, _ *http.Request) {
	snap := p.DataPlane.Snapshot()
	if snap == nil {
		http.Error(w, "no snapshot was applied yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// An error is the client's going away.
	_, _ = w.Write(appendSnapshot(nil, snap))
}

func (p *pages) loops(w http.ResponseWriter, _ *http.Request) {
	type view struct {
		Loop        int     `json:"loop"`
		Connections int64   `json:"connections"`
		BusySeconds float64 `json:"busySeconds"`
		Events      uint64  `json:"events"`
		Wakeups     uint64  `json:"wakeups"`
		Panics      uint64  `json:"panics"`
	}
	loops := p.DataPlane.Loops()
	views := make([]view, len(loops))
	for i, l := range loops {
		views[i] = view{l.Index, l.Conns, l.Busy.Seconds(), l.Events, l.Wakeups, l.Panics}
	}
	writeJSON(w, views)
}

func (p *pages) clusters(w http.ResponseWriter, _ *http.Request) {
	list := []Cluster{}
	if p.Clusters != nil {
		list = append(list, p.Clusters()...)
	}
	writeJSON(w, list)
}

func (p *pages) stages(w http.ResponseWriter, _ *http.Request) {
	list := []Stage{}
	if p.Stages != nil {
		list = append(list, p.Stages()...)
	}
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// An error is the client's going away.
	_ = enc.Encode(v)
}

func text(w http.ResponseWriter, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// An error is the client's going away.
	_, _ = fmt.Fprintln(w, line)
}
