package kube

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns the client configuration of a kubeconfig file, or of the pod's own cluster
// if the path is empty. Its clients have no rate limit: the API server's priority and
// fairness limits requests, and a second limit in the client would only add latency. They log
// each warning of an API server once an hour. Errors name the file.
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig given and not in a pod: %w", err)
		}
		return forController(cfg), nil
	}
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", kubeconfig, err)
	}
	return ParseConfig(content, kubeconfig)
}

// ParseConfig returns the client configuration for the content of a kubeconfig file. The
// path serves to resolve the names of other files in it, and for errors. Its clients are like
// Config's.
//
// clientcmd.BuildConfigFromFlags falls back to the pod's own cluster, with the token of the
// pod's service account, if the file is empty or has no current context. That would send
// this token to the wrong server, so ParseConfig returns an error.
func ParseConfig(content []byte, path string) (*rest.Config, error) {
	cfg, err := parse(content, path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", path, err)
	}
	return forController(cfg), nil
}

// forController makes the clients of a configuration send requests without a limit of their
// own, and log repeated warnings of the API server once.
func forController(cfg *rest.Config) *rest.Config {
	cfg.QPS = -1
	cfg.WarningHandlerWithContext = warnings
	return cfg
}

func parse(content []byte, path string) (*rest.Config, error) {
	parsed, err := clientcmd.Load(content)
	if err != nil {
		return nil, err
	}
	for _, c := range parsed.Clusters {
		c.LocationOfOrigin = path
	}
	for _, user := range parsed.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(parsed); err != nil {
		return nil, err
	}
	none := &clientcmd.ConfigOverrides{}
	return clientcmd.NewNonInteractiveClientConfig(*parsed, parsed.CurrentContext, none, nil).ClientConfig()
}
