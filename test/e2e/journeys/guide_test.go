package journeys

import (
	"context"
	"errors"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
)

// Whoever does what docs/consumers.md says, step by step and to the letter, ends
// with a program that works on the cluster.
func TestConsumersGuideWorksAsWritten(t *testing.T) {
	withAccess(t)
	installed(t)
	enabled(t, cluster1)
	apitest.Must(t, buildConsumers())
	steps, err := guide.Read(world, "consumers.md", "Step by step")
	apitest.Must(t, err)
	t.Cleanup(func() { moveTo(context.Background(), t, cluster1, defaultSet) })
	applied, typed := 0, 0
	for _, step := range steps {
		if step.YAML != "" {
			applied++
			if _, err := guide.Type(t.Context(), world, "kubectl apply -f -", step.YAML); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := guide.Type(context.Background(), world, "kubectl delete --ignore-not-found --timeout=2m -f -", step.YAML); err != nil {
					t.Error(err)
				}
			})
			continue
		}
		typed++
		apitest.Within(t, eventually, step.Command, func(ctx context.Context) error {
			said, err := guide.Type(ctx, world, step.Command, "")
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("it says nothing")
			}
			return err
		})
	}
	if applied < 7 || typed < 4 {
		t.Fatalf("the guide has %d YAML blocks and %d commands", applied, typed)
	}
	token(t, cluster1, "my-consumer")
	wants(t, cluster1, "guide", "done")
}
