package dataplane

import (
	"iter"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/upstream"
)

// Clusters returns the clusters' names and states, by name. Each state is read when
// its turn comes.
func (s *Server) Clusters() iter.Seq2[string, upstream.Stats] {
	return func(yield func(string, upstream.Stats) bool) {
		for _, c := range s.clusters.Clusters() {
			if !yield(c.Name(), c.Stats()) {
				return
			}
		}
	}
}

// Work returns what became of the requests to a cluster; false when there is none of
// the name. Unlike the states of [Server.Clusters] it is dear: it is meant for a few
// of them.
func (s *Server) Work(cluster string) (upstream.Work, bool) {
	c := s.clusters.Cluster(cluster)
	if c == nil {
		return upstream.Work{}, false
	}
	return c.Work(), true
}

// endpointChanged logs what happened to an endpoint's health.
func (s *Server) endpointChanged(e upstream.EndpointEvent) {
	fields := []zap.Field{zap.String("cluster", e.Cluster), zap.String("endpoint", e.Address)}
	switch e.Change {
	case upstream.EndpointEjected:
		s.opts.Logger.Warn("endpoint ejected: it failed too many requests in a row", append(fields, zap.Duration("for", e.Period))...)
	case upstream.EndpointUnwell:
		s.opts.Logger.Warn("endpoint taken out: it failed its health checks", fields...)
	case upstream.EndpointReturned:
		s.opts.Logger.Info("endpoint back on probation: its ejection is over", fields...)
	case upstream.EndpointWell:
		s.opts.Logger.Info("endpoint back: it passed its health checks", fields...)
	}
}

// unresolved logs a name that could not be looked up.
func (s *Server) unresolved(cluster, address string, err error) {
	s.opts.Logger.Warn("name of an endpoint not resolved", zap.String("cluster", cluster), zap.String("address", address), zap.Error(err))
}
