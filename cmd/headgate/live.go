package main

import (
	"github.com/headgate/headgate/dataplane/admin"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/pressure"
)

// clusters is what the admin server shows of the upstreams.
func (p *process) clusters() []admin.Cluster {
	var out []admin.Cluster
	for name, s := range p.server.Clusters() {
		t := s.Timeout
		out = append(out, admin.Cluster{
			Name: name, State: s.State.String(), Active: s.Active, Size: s.Size, Utilisation: s.Utilisation, Theta: s.Theta,
			Limit: s.Limit, Held: s.Held, HeldBytes: s.HeldBytes, MaxHeld: s.MaxHeld,
			Service: s.Service.Seconds(), Capacity: s.Capacity, Pace: s.Rate, Endpoints: s.Endpoints,
			Timeout: admin.Timeout{
				Mode: t.Mode.String(), Estimate: t.Estimate.Seconds(), Deadline: t.Deadline.Seconds(),
				Answers: t.Answers, Censored: t.Censored, Changes: t.Changes,
			},
		})
	}
	return out
}

// stages is what the admin server shows of the pipeline.
func (p *process) stages() []admin.Stage {
	list := p.server.Stages()
	out := make([]admin.Stage, len(list))
	for i, s := range list {
		out[i] = admin.Stage{
			Name: s.Name, Servers: s.Servers, Lambda: s.Lambda, Mu: s.Mu, Rho: s.Rho, ArrivalCV: s.ArrivalCV, ServiceCV: s.ServiceCV,
			Wait: s.Delay, Time: s.Time, Predicted: s.Predicted, Samples: s.Departures,
		}
	}
	return out
}

// guardStats are the limits of the process, for the metrics.
func (p *process) guardStats() metrics.GuardStats {
	if p.server == nil {
		return metrics.GuardStats{}
	}
	g := p.server.Guard()
	out := metrics.GuardStats{Connections: g.Limit.Connections, Memory: g.Limit.Memory, Shuts: map[string]float64{}}
	if g.Cause != pressure.NoCause {
		out.Closed = g.Cause.String()
	}
	for _, c := range []pressure.Cause{pressure.ByConnections, pressure.ByMemory} {
		out.Shuts[c.String()] = float64(g.Shuts[c])
	}
	return out
}

// stageStats is the same for the metrics.
func (p *process) stageStats() []metrics.StageStats {
	if p.server == nil {
		return nil
	}
	list := p.server.Stages()
	out := make([]metrics.StageStats, len(list))
	for i, s := range list {
		out[i] = metrics.StageStats{
			Stage: s.Name, Lambda: s.Lambda, Service: s.Time - s.Delay, Wait: s.Delay,
			ArrivalCV: s.ArrivalCV, ServiceCV: s.ServiceCV, Rho: s.Rho, Predicted: s.Predicted,
		}
	}
	return out
}
