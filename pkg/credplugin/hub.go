package credplugin

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	userAgent = "cluster-inventory-cp-creds"

	// namespaceFile contains the namespace of the pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// hub is the hub's API server and the consumer's namespace on it.
type hub struct {
	config    *rest.Config
	namespace string
	source    string // where the namespace comes from, for error messages
}

// findHub returns the API server of the pod it runs in, else that of the
// kubeconfig. The namespace is the requested one, else the pod's, else that of the
// kubeconfig's context, else "default".
func findHub(requested string) (*hub, error) {
	kubeconfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := rest.InClusterConfig()
	if err != nil {
		var kubeconfigErr error
		if config, kubeconfigErr = kubeconfig.ClientConfig(); clientcmd.IsEmptyConfig(kubeconfigErr) {
			return nil, failf(ExitNoConfig, "cannot tell where the hub's API server is: %v, "+
				"and there is no kubeconfig in $KUBECONFIG or ~/.kube/config", err)
		} else if kubeconfigErr != nil {
			return nil, failf(ExitNoConfig, "cannot tell where the hub's API server is: %v, "+
				"and the kubeconfig cannot be used: %v", err, kubeconfigErr)
		}
	}
	name, source := findNamespace(requested, kubeconfig)
	return &hub{config: config, namespace: name, source: source}, nil
}

func findNamespace(requested string, kubeconfig clientcmd.ClientConfig) (name, source string) {
	if requested != "" {
		return requested, "from $NAMESPACE"
	}
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data)), "of the pod"
	}
	if name, _, err := kubeconfig.Namespace(); err == nil && name != "" {
		return name, "of the kubeconfig's context"
	}
	return metav1.NamespaceDefault, "by default"
}

// secret reads the copy of an account's token.
func (h *hub) secret(ctx context.Context, wanted account) (*corev1.Secret, error) {
	client, err := newClient(h.config)
	if err != nil {
		return nil, failf(ExitNoConfig, "the configuration for the hub's API server cannot be used: %v", err)
	}
	secret := &corev1.Secret{}
	err = client.Get().Namespace(h.namespace).Resource("secrets").Name(wanted.secret()).Do(ctx).Into(secret)
	if err != nil {
		return nil, h.failure(ctx, wanted, err)
	}
	return secret, nil
}

// grace is how long a request may take to return its own error once its context
// has ended.
const grace = 500 * time.Millisecond

// secretWithin calls secret and returns when the context ends, even if a
// kubeconfig names an exec plugin: client-go waits for that regardless of the
// context.
func (h *hub) secretWithin(ctx context.Context, wanted account) (*corev1.Secret, error) {
	type result struct {
		secret *corev1.Secret
		err    error
	}
	results := make(chan result, 1)
	go func() {
		secret, err := h.secret(ctx, wanted)
		results <- result{secret, err}
	}()
	select {
	case got := <-results:
		return got.secret, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-results:
		return got.secret, got.err
	case <-time.After(grace):
		return nil, h.failure(ctx, wanted, ctx.Err())
	}
}

// failure explains a failed read to the consumer's owner.
func (h *hub) failure(ctx context.Context, wanted account, err error) *Failure {
	name := h.namespace + "/" + wanted.secret()
	switch {
	case apierrors.IsNotFound(err):
		return failf(ExitNoSecret,
			"there is no Secret %s (namespace %s): no token of the ManagedServiceAccount %s was copied there. "+
				"The hub's administrator gives that account the label %s=true and names %s in its annotation %s; "+
				"if that was done, %s",
			name, h.source, wanted, contract.LabelSyncToProfile, h.namespace,
			contract.AnnotationSyncToNamespaces, lookAt(h.namespace, wanted))
	case apierrors.IsForbidden(err):
		return failf(ExitForbidden, "not allowed to read Secret %s (namespace %s): %v; "+
			"grant the consumer %q on secrets with a Role and a RoleBinding in namespace %s",
			name, h.source, err, "get", h.namespace)
	case apierrors.IsUnauthorized(err):
		return failf(ExitForbidden, "the hub's API server %s does not accept the consumer's credentials, "+
			"so Secret %s cannot be read: %v; check its service account or kubeconfig", h.config.Host, name, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failf(ExitUnreachable, "the hub's API server %s did not return Secret %s within --timeout: %v",
			h.config.Host, name, err)
	default:
		return failf(ExitUnreachable, "the hub's API server %s did not return Secret %s: %v", h.config.Host, name, err)
	}
}

// newClient returns a client for core/v1 only. The program is copied to consumers
// and runs for every login, so it has to be small.
func newClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.WarningHandler = rest.NoWarnings{}
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
