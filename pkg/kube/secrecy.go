package kube

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyLevel is the verbosity from which client-go logs what requests and
// responses carry.
const bodyLevel = 8

// WithoutBodies returns a context for requests that carry secrets: whatever the
// verbosity, client-go does not log their bodies, nor the answers'.
func WithoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logger.WithSink(discreet{logger.GetSink()}))
}

// discreet is a sink that stays below bodyLevel.
type discreet struct{ logr.LogSink }

func (d discreet) Enabled(level int) bool {
	return level < bodyLevel && d.LogSink.Enabled(level)
}

func (d discreet) WithValues(keysAndValues ...any) logr.LogSink {
	return discreet{d.LogSink.WithValues(keysAndValues...)}
}

func (d discreet) WithName(name string) logr.LogSink {
	return discreet{d.LogSink.WithName(name)}
}

// WithCallDepth keeps the caller's place in the code right.
func (d discreet) WithCallDepth(depth int) logr.LogSink {
	if deeper, ok := d.LogSink.(logr.CallDepthLogSink); ok {
		return discreet{deeper.WithCallDepth(depth)}
	}
	return d
}
