package upstream

import (
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// Defaults of ir.RetryBudget.
const (
	DefaultRetryPercent      = 20
	DefaultRetryMinPerSecond = 10
)

// budgetWindow is how long an allowance that was not used is kept.
const budgetWindow = 10 * time.Second

// retryBudget is the allowance of further tries on one loop. Each request puts a
// share of a try into it, and time a few more, so that a quiet cluster has some;
// each further try takes one out. It belongs to the loop.
type retryBudget struct {
	tries    float64
	requests float64 // that came lately, fading over the window
	at       time.Time
}

// age lets time pass.
func (b *retryBudget) age(now time.Time, perSecond float64) {
	elapsed := now.Sub(b.at).Seconds()
	if b.at.IsZero() || elapsed > budgetWindow.Seconds() {
		elapsed = budgetWindow.Seconds()
	}
	b.at = now
	b.tries += elapsed * perSecond
	b.requests *= 1 - elapsed/budgetWindow.Seconds()
}

// deposit notes a request.
func (b *retryBudget) deposit(now time.Time, p ir.RetryBudget, loops int) {
	b.age(now, float64(p.MinPerSecond)/float64(loops))
	share := float64(p.Percent) / 100
	b.requests++
	b.tries = min(b.tries+share, b.bound(p, loops))
}

// withdraw takes a try out, or returns false.
func (b *retryBudget) withdraw(now time.Time, p ir.RetryBudget, loops int) bool {
	b.age(now, float64(p.MinPerSecond)/float64(loops))
	b.tries = min(b.tries, b.bound(p, loops))
	if p.Off || b.tries < 1 {
		return false
	}
	b.tries--
	return true
}

// bound is the most that the budget holds: what the requests of the window put
// in, and the time's share of one second.
func (b *retryBudget) bound(p ir.RetryBudget, loops int) float64 {
	return max(1, float64(p.MinPerSecond)/float64(loops)) + b.requests*float64(p.Percent)/100
}

func withRetryDefaults(b ir.RetryBudget) ir.RetryBudget {
	if b.Percent == 0 {
		b.Percent = DefaultRetryPercent
	}
	if b.MinPerSecond == 0 {
		b.MinPerSecond = DefaultRetryMinPerSecond
	}
	return b
}

// Retry counts a further try of a request, on the loop with the index, and tells
// whether the cluster's budget allows it.
func (c *Cluster) Retry(loop int) bool {
	sh := c.Shard(loop)
	if !sh.budget.withdraw(sh.loop.Now(), c.state.Load().retries, len(c.shards)) {
		sh.metrics.RetryRefused()
		return false
	}
	sh.metrics.Retried()
	return true
}
