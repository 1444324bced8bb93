package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns the client configuration of a kubeconfig file, or of the pod's
// own cluster if the path is empty. Its clients have no rate limit of their own:
// the API server's priority and fairness limits requests, and a second limit in
// the client would only add latency. Errors name the file.
func Config(kubeconfig string) (*rest.Config, error) {
	cfg, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig given and not in a pod: %w", err)
		}
		return cfg, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", kubeconfig, err)
	}
	return cfg, nil
}
