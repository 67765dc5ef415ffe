package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogr returns the process's log as the Kubernetes libraries want it. What
// they call information is of no use to an operator: it is logged as debug.
func newLogr(log *zap.Logger) logr.Logger { return logr.New(&logSink{log: log}) }

// logSink implements [logr.LogSink].
type logSink struct {
	log *zap.Logger
}

func (s *logSink) Init(logr.RuntimeInfo) {}

func (s *logSink) Enabled(level int) bool {
	return level < 4 && s.log.Core().Enabled(zapcore.DebugLevel)
}

func (s *logSink) Info(_ int, msg string, pairs ...any) { s.log.Debug(msg, fields(pairs)...) }

func (s *logSink) Error(err error, msg string, pairs ...any) {
	s.log.Warn(msg, append(fields(pairs), zap.Error(err))...)
}

func (s *logSink) WithValues(pairs ...any) logr.LogSink {
	return &logSink{s.log.With(fields(pairs)...)}
}

func (s *logSink) WithName(name string) logr.LogSink { return &logSink{s.log.Named(name)} }

// fields turns keys and values into fields.
func fields(pairs []any) []zap.Field {
	out := make([]zap.Field, 0, len(pairs)/2+1)
	for i := 0; i+1 < len(pairs); i += 2 {
		key := fmt.Sprint(pairs[i])
		switch v := pairs[i+1].(type) {
		case string:
			out = append(out, zap.String(key, v))
		case error:
			out = append(out, zap.NamedError(key, v))
		case fmt.Stringer:
			out = append(out, zap.Stringer(key, v))
		default:
			out = append(out, zap.String(key, fmt.Sprintf("%+v", v)))
		}
	}
	if len(pairs)%2 == 1 {
		out = append(out, zap.String("rest", fmt.Sprint(pairs[len(pairs)-1])))
	}
	return out
}
