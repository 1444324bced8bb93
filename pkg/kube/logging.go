package kube

import (
	"flag"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// AddLogFlags adds klog's verbosity, the one log setting there is.
func AddLogFlags(flags *pflag.FlagSet) {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	flags.AddGoFlag(klogFlags.Lookup("v"))
}

// Logger returns the process's logger, after making controller-runtime use it
// too: client-go and addon-framework log through klog, so everything does.
func Logger() logr.Logger {
	logger := klog.Background()
	ctrl.SetLogger(logger)
	return logger
}
