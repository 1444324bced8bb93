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
)

const (
	userAgent = "cluster-inventory-cp-creds"

	// namespaceFile is where a pod finds the namespace it runs in.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// hub is the API server the consumer runs on, and the consumer's namespace.
type hub struct {
	config    *rest.Config
	namespace place
}

// findHub takes the API server of the pod it runs in, else that of the
// kubeconfig; and the namespace that is asked for, else the pod's, else that of
// the kubeconfig's context, else "default".
func findHub(namespace string) (*hub, error) {
	kubeconfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := rest.InClusterConfig()
	if err != nil {
		var kubeconfigErr error
		if config, kubeconfigErr = kubeconfig.ClientConfig(); clientcmd.IsEmptyConfig(kubeconfigErr) {
			return nil, failf(ExitNoConfig, "cannot tell where the hub's API server is: %v, and there is no kubeconfig in $KUBECONFIG or ~/.kube/config", err)
		} else if kubeconfigErr != nil {
			return nil, failf(ExitNoConfig, "cannot tell where the hub's API server is: %v, and the kubeconfig is of no use: %v", err, kubeconfigErr)
		}
	}
	config.UserAgent = userAgent
	config.WarningHandler = rest.NoWarnings{}
	return &hub{config: config, namespace: findPlace(namespace, kubeconfig)}, nil
}

func findPlace(namespace string, kubeconfig clientcmd.ClientConfig) place {
	if namespace != "" {
		return place{name: namespace, source: "from $NAMESPACE"}
	}
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return place{name: strings.TrimSpace(string(data)), source: "of the pod"}
	}
	if name, _, err := kubeconfig.Namespace(); err == nil && name != "" {
		return place{name: name, source: "of the kubeconfig's context"}
	}
	return place{name: metav1.NamespaceDefault, source: "by default"}
}

// secret reads the copy of an account's token.
func (h *hub) secret(ctx context.Context, wanted account) (*corev1.Secret, error) {
	client, err := newClient(h.config)
	if err != nil {
		return nil, failf(ExitNoConfig, "the configuration of the hub's API server is of no use: %v", err)
	}
	secret := &corev1.Secret{}
	err = client.Get().Namespace(h.namespace.name).Resource("secrets").Name(wanted.secret()).Do(ctx).Into(secret)
	if err != nil {
		return nil, h.failure(ctx, wanted, err)
	}
	return secret, nil
}

// grace is how long after its end a request may take to say so itself.
const grace = 500 * time.Millisecond

// secretInTime is secret that ends with the context even if a kubeconfig has a
// program of its own run to log in: client-go waits for that whatever the context
// says.
func (h *hub) secretInTime(ctx context.Context, wanted account) (*corev1.Secret, error) {
	type answer struct {
		secret *corev1.Secret
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		secret, err := h.secret(ctx, wanted)
		answered <- answer{secret, err}
	}()
	select {
	case got := <-answered:
		return got.secret, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-answered:
		return got.secret, got.err
	case <-time.After(grace):
		return nil, h.failure(ctx, wanted, ctx.Err())
	}
}

// failure says what a failed read means to the consumer.
func (h *hub) failure(ctx context.Context, wanted account, err error) *Failure {
	name := h.namespace.name + "/" + wanted.secret()
	switch {
	case apierrors.IsNotFound(err):
		return missing(wanted, h.namespace)
	case apierrors.IsForbidden(err):
		return failf(ExitForbidden, "not allowed to read Secret %s (namespace %s): %v; let a Role and a RoleBinding in namespace %s give the consumer %q on secrets", name, h.namespace.source, err, h.namespace.name, "get")
	case apierrors.IsUnauthorized(err):
		return failf(ExitForbidden, "the hub's API server %s does not know the consumer, so Secret %s cannot be read: %v; look at its service account or kubeconfig", h.config.Host, name, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failf(ExitUnreachable, "the hub's API server %s gave no Secret %s within --timeout: %v", h.config.Host, name, err)
	default:
		return failf(ExitUnreachable, "the hub's API server %s gave no Secret %s: %v", h.config.Host, name, err)
	}
}

// newClient returns a client that knows core/v1 alone: the program is copied to
// consumers and run for every login, so it is to be small.
func newClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
