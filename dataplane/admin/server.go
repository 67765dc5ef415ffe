package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/ir"
)

// DataPlane is what the server shows. Its methods may be called by several
// goroutines at a time.
type DataPlane interface {
	// Ready returns why the data plane does not serve yet, or nil.
	Ready() error
	// Snapshot returns what is served, or nil before the first Apply.
	Snapshot() *ir.Snapshot
	// Loops returns the loops' counters.
	Loops() []Loop
}

// Loop holds the counters of one event loop since its start.
type Loop struct {
	Index   int
	Conns   int64 // open connections, to clients and upstreams
	Busy    time.Duration
	Events  uint64
	Wakeups uint64
	Panics  uint64
}

// Cluster is one upstream. Times are in seconds, rates per second; what is not
// known is 0.
type Cluster struct {
	Name        string  `json:"name"`
	State       string  `json:"state"` // calm, pacing, holding, shedding
	Active      int64   `json:"active"`
	Size        int     `json:"size"`
	Utilisation float64 `json:"utilisation"`
	Theta       float64 `json:"theta"`
	Limit       int64   `json:"limit"`
	Held        int64   `json:"held"`
	HeldBytes   int64   `json:"heldBytes"`
	MaxHeld     int     `json:"maxHeld"`
	Service     float64 `json:"service"`  // mean time that a request keeps its place
	Capacity    float64 `json:"capacity"` // Lambda_max
	Pace        float64 `json:"pace"`     // Eq. 9
	Endpoints   int     `json:"endpoints"`
	Timeout     Timeout `json:"adaptiveTimeout"`
}

// Timeout is a cluster's adaptive timeout.
type Timeout struct {
	Mode     string  `json:"mode"` // enforce, observe, off
	Estimate float64 `json:"estimate"`
	Deadline float64 `json:"deadline"`
	Answers  uint64  `json:"answers"`
	Censored uint64  `json:"censored"`
	Changes  uint64  `json:"changes"`
}

// Stage is one stage of the pipeline, over the last seconds. Times are in
// seconds, rates per second.
type Stage struct {
	Name      string  `json:"name"`
	Servers   int     `json:"servers,omitempty"`
	Lambda    float64 `json:"lambda"`
	Mu        float64 `json:"mu"`
	Rho       float64 `json:"rho"`
	ArrivalCV float64 `json:"arrivalCV"`
	ServiceCV float64 `json:"serviceCV"`
	Wait      float64 `json:"wait"`
	Time      float64 `json:"time"`      // measured W
	Predicted float64 `json:"predicted"` // W of the G/G/c model
	Samples   uint64  `json:"samples"`
}

// Options configure a Server. DataPlane and Metrics are required.
type Options struct {
	DataPlane DataPlane
	Metrics   prometheus.Gatherer
	// MetricsOnly leaves everything out but the metrics, for an address that
	// others can reach. DataPlane may be nil then.
	MetricsOnly bool
	// Clusters and Stages return what is shown of the upstreams and of the
	// pipeline; nil shows nothing.
	Clusters func() []Cluster
	Stages   func() []Stage
	// Version is shown on the index page.
	Version string
	// Logger gets the HTTP server's complaints; may be nil.
	Logger *zap.Logger
}

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = time.Minute
	writeTimeout      = 30 * time.Second // net/http/pprof adds a profile's time to it
	maxHeaderBytes    = 16 << 10
)

// Server is the admin server.
type Server struct {
	http http.Server
}

// New returns a server that does not listen yet.
func New(o Options) (*Server, error) {
	switch {
	case o.DataPlane == nil && !o.MetricsOnly:
		return nil, errors.New("admin: no data plane")
	case o.Metrics == nil:
		return nil, errors.New("admin: no metrics")
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	complaints, err := zap.NewStdLogAt(o.Logger, zap.WarnLevel)
	if err != nil {
		return nil, err
	}
	return &Server{http: http.Server{
		Handler:           guard(newPages(o)),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          complaints,
	}}, nil
}

// Serve answers the connections of ln until Close, then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// SetKeepAlive tells whether connections are kept after an answer. Without it
// those that wait are closed: their clients connect again, and come to whoever
// listens by then.
func (s *Server) SetKeepAlive(on bool) { s.http.SetKeepAlivesEnabled(on) }

// Close closes the listeners and waits for the answers under way. When ctx ends
// first they are cut off and ctx's error is returned.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}
