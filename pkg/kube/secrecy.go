package kube

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyLevel is the verbosity from which client-go logs the bodies of requests and
// responses.
const bodyLevel = 8

// WithoutBodies returns a context for requests that carry secrets: client-go does
// not log the bodies of requests and responses made with it, at any verbosity.
func WithoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logger.WithSink(bodyFilter{logger.GetSink()}))
}

// bodyFilter is a log sink that is disabled from bodyLevel on.
type bodyFilter struct{ logr.LogSink }

func (f bodyFilter) Enabled(level int) bool {
	return level < bodyLevel && f.LogSink.Enabled(level)
}

func (f bodyFilter) WithValues(keysAndValues ...any) logr.LogSink {
	return bodyFilter{f.LogSink.WithValues(keysAndValues...)}
}

func (f bodyFilter) WithName(name string) logr.LogSink {
	return bodyFilter{f.LogSink.WithName(name)}
}

// WithCallDepth makes log lines show the caller's file and line.
func (f bodyFilter) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := f.LogSink.(logr.CallDepthLogSink); ok {
		return bodyFilter{sink.WithCallDepth(depth)}
	}
	return f
}
