package kube

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Log is how a program logs.
type Log struct {
	format    logFormat
	verbosity *flag.Flag
}

// AddLogFlags adds the flags --log-format and klog's -v; there are no other log settings.
func AddLogFlags(flags *pflag.FlagSet) *Log {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	l := &Log{format: formatText, verbosity: klogFlags.Lookup("v")}
	flags.AddGoFlag(l.verbosity)
	flags.Var(&l.format, "log-format", `"text", or "json" for one object per line`)
	return l
}

// Logger returns the process's logger and makes controller-runtime use it, too.
// It is klog's, because client-go and addon-framework log through klog. Call it after the
// flags were parsed.
func (l *Log) Logger() logr.Logger {
	if l.format == formatJSON {
		klog.SetLoggerWithOptions(l.json(os.Stderr), klog.ContextualLogger(true))
	}
	logger := klog.Background()
	ctrl.SetLogger(logger)
	return logger
}

// json returns a logger of JSON. What klog logs at -v=N, slog has at level -N.
func (l *Log) json(out io.Writer) logr.Logger {
	verbosity, _ := strconv.Atoi(l.verbosity.Value.String()) // klog has parsed it
	return logr.FromSlogHandler(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
}

type logFormat string

const (
	formatText logFormat = "text"
	formatJSON logFormat = "json"
)

// String is part of pflag.Value.
func (f *logFormat) String() string { return string(*f) }

// Type is part of pflag.Value.
func (*logFormat) Type() string { return "format" }

// Set is part of pflag.Value.
func (f *logFormat) Set(text string) error {
	if format := logFormat(text); format == formatText || format == formatJSON {
		*f = format
		return nil
	}
	return fmt.Errorf("it must be %q or %q", formatText, formatJSON)
}
