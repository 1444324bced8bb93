package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	definitionName = "agentrevisions." + contract.AgentRevisionGroup

	// annotationNumber has the number of a definition, 0 if it is missing.
	annotationNumber = "inventory.open-cluster-management.io/definition"

	// pollInterval is the pause before another attempt.
	pollInterval = time.Second

	// serversFollow is how long the API servers of a hub may take to use another definition, and
	// each learns of it from its own watch.
	serversFollow = 5 * time.Second
)

// Options configures an upgrade of the definition.
type Options struct {
	// File has the chart's definition, in YAML. Required.
	File string

	// Timeout limits everything.
	Timeout time.Duration
}

// Run returns when the hub has the definition in the file, or a newer one.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	wanted, err := read(opts.File)
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	return run(ctx, c, wanted, opts.Timeout, pollInterval, serversFollow)
}

// read reads a definition of AgentRevisions.
func read(file string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &definition.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if definition.GetKind() != "CustomResourceDefinition" || definition.GetName() != definitionName {
		return nil, fmt.Errorf("%s defines %s %q instead of %s",
			file, definition.GetKind(), definition.GetName(), definitionName)
	}
	return definition, nil
}

func run(
	ctx context.Context, c client.Client, wanted *unstructured.Unstructured, timeout, poll, follow time.Duration,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		changed, err := update(ctx, c, wanted)
		switch {
		case err == nil && changed:
			log.FromContext(ctx).Info("Updated the definition of AgentRevisions", "definition", numberOf(wanted))
			select {
			case <-time.After(follow):
				return true, nil
			case <-ctx.Done():
				return true, ctx.Err()
			}
		case err == nil, isFinal(err):
			return true, err
		default:
			log.FromContext(ctx).Error(err, "Updating the definition of AgentRevisions failed and is retried")
			last = err
			return false, nil
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the definition of AgentRevisions was not updated within %s: %w", timeout, errors.Join(last, err))
	}
	return err
}

// update patches the hub's definition if it is older.
func update(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) (changed bool, err error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKey{Name: definitionName}, live); err != nil {
		return false, fmt.Errorf("reading the hub's definition: %w", err)
	}
	if numberOf(live) >= numberOf(wanted) {
		return false, nil
	}
	patch, err := kube.MergePatch(live.GetResourceVersion(), map[string]any{
		"metadata": map[string]any{"annotations": wanted.GetAnnotations(), "labels": wanted.GetLabels()},
		"spec":     wanted.Object["spec"],
	})
	if err != nil {
		return false, err
	}
	if err := c.Patch(ctx, live, patch); err != nil {
		return false, fmt.Errorf("changing the hub's definition: %w", err)
	}
	return true, nil
}

// numberOf returns the number of a definition.
func numberOf(definition *unstructured.Unstructured) int {
	number, err := strconv.Atoi(definition.GetAnnotations()[annotationNumber])
	if err != nil {
		return 0
	}
	return number
}

// isFinal reports whether another attempt cannot help.
func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}
