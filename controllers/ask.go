package controllers

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/kube"
	"github.com/headgate/headgate/dataplane/ir"
)

const (
	// askFor is how long an API server that does not answer is asked what the process
	// is to be like; nothing can be served without it, but probes are not answered
	// meanwhile either.
	askFor   = 10 * time.Second
	askEvery = 500 * time.Millisecond
)

// AskProcess asks the API server what the parameters of the GatewayClasses say of the
// process: its loops are made before the objects are followed.
func AskProcess(ctx context.Context, config *rest.Config, o compile.Options, log *zap.Logger) ir.Process {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for {
		in, err := kube.Classes(ctx, config, o)
		if err == nil {
			snap, _ := compile.Compile(in)
			return snap.Process
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			log.Warn("the API server does not say how many event loops the GatewayClass wants: the flags count until the process is started again", zap.Error(err))
			return ir.Process{}
		}
	}
}
