package kube

import (
	"flag"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// AddLogFlags adds klog's flag -v; there are no other log settings.
func AddLogFlags(flags *pflag.FlagSet) {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	flags.AddGoFlag(klogFlags.Lookup("v"))
}

// Logger returns the process's logger and makes controller-runtime use it, too.
// It is klog's, because client-go and addon-framework log through klog.
func Logger() logr.Logger {
	logger := klog.Background()
	ctrl.SetLogger(logger)
	return logger
}
