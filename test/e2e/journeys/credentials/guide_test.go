package credentials

import (
	"context"
	"errors"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// Following docs/consumers.md step by step and to the letter ends with a program that works
// on the cluster.
func TestConsumersGuideWorksAsWritten(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	apitest.Must(t, buildConsumers())
	steps, err := guide.Read(journeys.Fleet, "consumers.md", "Step by step")
	apitest.Must(t, err)
	t.Cleanup(func() { journeys.MoveTo(context.Background(), t, journeys.Cluster1, journeys.DefaultSet) })
	applied, typed := 0, 0
	for _, step := range steps {
		if step.YAML != "" {
			applied++
			if _, err := guide.Type(t.Context(), journeys.Fleet, "kubectl apply -f -", step.YAML); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := guide.Type(context.Background(), journeys.Fleet,
					"kubectl delete --ignore-not-found --timeout=2m -f -", step.YAML); err != nil {
					t.Error(err)
				}
			})
			continue
		}
		typed++
		apitest.Within(t, journeys.Eventually, step.Command, func(ctx context.Context) error {
			said, err := guide.Type(ctx, journeys.Fleet, step.Command, "")
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("it says nothing")
			}
			return err
		})
	}
	if applied < 7 || typed < 4 {
		t.Fatalf("the guide has %d YAML blocks and %d commands", applied, typed)
	}
	token(t, journeys.Cluster1, "my-consumer")
	wants(t, journeys.Cluster1, "guide", "done")
}
