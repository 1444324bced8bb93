package fleet

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
)

// ConsumerImage is an image for programs of the caller's, by the name that
// docs/consumers.md uses for the reader's program. Fill ConsumerDir before a pod
// of it starts.
const ConsumerImage = "example.com/my-consumer"

// Images of other projects' consumers. Their pods run in a fleet with Options.Consumers,
// each in a network of its own.
const (
	// KueueImage has Kueue's /manager.
	KueueImage = "registry.k8s.io/kueue/kueue"
	// KnativeOperatorImage has /operator, and in /kodata the manifests that it installs.
	KnativeOperatorImage = "gcr.io/knative-releases/knative.dev/operator/cmd/operator"
)

// ConsumerDir is what is at / in ConsumerImage. Pods run as other users: make
// directories and programs readable and executable for all.
func (f *Fleet) ConsumerDir() string { return f.path("consumer") }

// findConsumers builds the programs that are not in the cache.
func (f *Fleet) findConsumers(ctx context.Context, report *progress.Report) (map[string]string, error) {
	found := map[string]string{}
	for image, program := range map[string]programs.Program{
		KueueImage: programs.Kueue, KnativeOperatorImage: programs.KnativeOperator,
	} {
		var err error
		if found[image], err = program.Path(ctx, f.Root, report); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// serviceTunnel is the socket at which a cluster's API server reaches the webhooks of
// consumers.
func (f *Fleet) serviceTunnel(cluster string) string {
	return filepath.Join(f.podDir(cluster), "tunnel")
}

// consumerNodeFlags give the pods of consumers, which listen on all addresses at fixed
// ports, networks of their own, and the API server a way to their webhooks.
func (f *Fleet) consumerNodeFlags(cluster string) []string {
	if len(f.consumers) == 0 {
		return nil
	}
	flags := []string{"--service-tunnel=" + f.serviceTunnel(cluster)}
	for _, image := range slices.Sorted(maps.Keys(f.consumers)) {
		flags = append(flags, "--image="+image+"="+f.consumers[image], "--own-network="+image)
	}
	return flags
}

// KueueSources is where the sources of the pinned Kueue are, its chart among them.
func KueueSources(ctx context.Context) (string, error) { return sources(ctx, programs.Kueue) }

// KnativeOperatorSources is where the sources of the pinned Knative operator are, its
// manifests among them.
func KnativeOperatorSources(ctx context.Context) (string, error) {
	return sources(ctx, programs.KnativeOperator)
}

func sources(ctx context.Context, program programs.Program) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	return program.ModuleDir(ctx, root)
}

// Template renders a chart in a directory, with more arguments for Helm. The fleet must
// have been started with access.
func (f *Fleet) Template(
	ctx context.Context, release, dir, namespace string, args ...string,
) ([]*unstructured.Unstructured, error) {
	if f.access.helm == "" {
		return nil, errors.New("only a fleet that was started with access renders charts")
	}
	return f.template(ctx, release, dir, namespace, args...)
}

// Apply applies objects to the hub or a spoke: kinds first, of which it waits until they
// are served.
func (f *Fleet) Apply(ctx context.Context, cluster string, all ...*unstructured.Unstructured) error {
	c, err := f.Client(cluster)
	if err != nil {
		return err
	}
	return applyInOrder(ctx, c, all)
}

// Decode reads the objects in YAML documents.
func Decode(text io.Reader) ([]*unstructured.Unstructured, error) { return objects.Decode(text) }
