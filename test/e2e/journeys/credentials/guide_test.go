package credentials

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// everywhere installs the addon as README.md, docs/quickstart.md and docs/migration.md do.
var everywhere = []string{
	"--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet=global",
}

// Following docs/consumers.md step by step and to the letter ends with a program that works
// on the cluster. So it does on a hub on which the quick start was followed before, by a team
// that keeps what it has, as MultiKueue's guide does afterwards, and the commands of the migration
// guide leave all of it alone; and pasting everything again changes nothing.
func TestGuidesWorkAsWrittenOneAfterTheOther(t *testing.T) {
	journeys.WithAccess(t)
	hub := journeys.Hub(t)
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		journeys.Disable(t, cluster)
	}
	for _, file := range []string{"README.md", "docs/quickstart.md", "docs/migration.md"} {
		text, err := os.ReadFile(filepath.Join(journeys.Fleet.Root, file))
		apitest.Must(t, err)
		if !strings.Contains(string(text), strings.Join(everywhere, " ")) {
			t.Errorf("%s installs the addon otherwise than by %v", file, everywhere)
		}
	}
	journeys.Installed(t, everywhere...)
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		journeys.Available(t, cluster)
	}
	apitest.Must(t, journeys.BuildConsumers())

	t.Log("=== a team that the quick start serves, by the set default")
	bystander := journeys.Namespace(t, "bystander")
	journeys.Bind(t, bystander, journeys.DefaultSet)
	before := map[string]string{}
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		before[cluster] = string(journeys.HasProfile(t, bystander, cluster).UID)
	}
	page, err := os.ReadFile(filepath.Join(journeys.Fleet.Root, "docs", "quickstart.md"))
	apitest.Must(t, err)
	team := ""
	for _, exchange := range guide.Transcript(string(page)) {
		if strings.Contains(exchange.Command, "kubectl apply -f docs/quickstart/team.yaml") {
			team = exchange.Command
		}
	}
	if team == "" {
		t.Fatal("the quick start creates no team")
	}
	reader := journeys.Newcomer(t)
	t.Cleanup(func() {
		_, err := reader.Type(context.Background(),
			"kubectl delete --ignore-not-found --timeout=2m -f docs/quickstart/accounts.yaml -f docs/quickstart/team.yaml", "")
		if err != nil {
			t.Error(err)
		}
	})

	consumers, err := guide.Read(journeys.Fleet, "consumers.md", "Step by step")
	apitest.Must(t, err)
	kueue, err := guide.Read(journeys.Fleet, "kueue.md", "MultiKueue, step by step")
	apitest.Must(t, err)
	for i, step := range kueue {
		if strings.HasPrefix(step.YAML, "# values.yaml") {
			kueue = kueue[:i] // What follows needs Kueue, and is a story of journeys/consumers.
			break
		}
	}
	for _, time := range []string{"first", "second"} {
		t.Logf("=== for the %s time: quick start, consumers, MultiKueue", time)
		_, err := reader.Type(t.Context(), team, "")
		apitest.Must(t, err)
		if time == "first" {
			journeys.HasProfile(t, "my-team", journeys.Cluster2)
		}
		takeSteps(t, consumers, time == "first", 7, 5)
		takeSteps(t, kueue, time == "first", 2, 1)
		pastesMigration(t)
		for _, namespace := range []string{"my-team", "kueue-system"} {
			journeys.HasProfile(t, namespace, journeys.Cluster1)
		}
		hasCopy(t, "kueue-system", journeys.Cluster1, "multikueue")
		hasCopy(t, "my-team", journeys.Cluster1, "my-consumer")
		for cluster, uid := range before {
			if now := string(journeys.HasProfile(t, bystander, cluster).UID); now != uid {
				t.Errorf("the other team's profile of %s is another one: %s, and before %s", cluster, now, uid)
			}
		}
	}
	token(t, journeys.Cluster1, "my-consumer")
	wants(t, journeys.Cluster1, "guide", "done")
	if _, err := journeys.ProfileOf(t.Context(), hub, journeys.ManagerNS, journeys.Cluster1); err == nil {
		t.Error("the install set publishes profiles in the manager's namespace")
	}
}

// pastesMigration types the commands of docs/migration.md that change accounts and profiles, on a
// hub whose gates were never on. They refuse to name another consumer's namespace in its accounts,
// and find nothing else to do.
func pastesMigration(t *testing.T) {
	t.Helper()
	typed := 0
	for _, section := range []string{"Say where tokens may go", "See what is left"} {
		steps, err := guide.Read(journeys.Fleet, "migration.md", section)
		apitest.Must(t, err)
		for _, step := range steps {
			typed++
			said, err := guide.Type(t.Context(), journeys.Fleet, step.Command, "")
			refused := err != nil && strings.Contains(err.Error(), "already has a value (my-team)")
			if annotates := strings.Contains(step.Command, " annotate "); annotates != (err != nil) || annotates && !refused {
				t.Errorf("%s: %v", step.Command, err)
			}
			if strings.Contains(said, "deleted") {
				t.Errorf("%s has deleted what belongs to others:\n%s", step.Command, said)
			}
		}
	}
	if typed < 5 {
		t.Errorf("the guide has %d commands", typed)
	}
}

// takeSteps takes the steps of a guide, at least so many blocks and commands. With undo, what they
// apply goes when the story ends.
func takeSteps(t *testing.T, steps []guide.Step, undo bool, blocks, commands int) {
	t.Helper()
	applied, typed := 0, 0
	for i, step := range steps {
		if step.YAML != "" {
			applied++
			if _, err := guide.Type(t.Context(), journeys.Fleet, "kubectl apply -f -", step.YAML); err != nil {
				t.Fatal(err)
			}
			if undo {
				t.Cleanup(func() {
					if _, err := guide.Type(context.Background(), journeys.Fleet,
						"kubectl delete --ignore-not-found --timeout=2m -f -", step.YAML); err != nil {
						t.Error(err)
					}
				})
			}
			continue
		}
		typed++
		apitest.Within(t, journeys.Eventually, step.Command, func(ctx context.Context) error {
			said, err := guide.Type(ctx, journeys.Fleet, step.Command, "")
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("it says nothing")
			}
			if err == nil && strings.Contains(step.Command, "managed-serviceaccount") &&
				!strings.Contains(steps[i+1].YAML, "namespace: "+strings.TrimSpace(said)+"\n") {
				t.Errorf("the account is in namespace %s, and the rights are not:\n%s", said, steps[i+1].YAML)
			}
			return err
		})
	}
	if applied < blocks || typed < commands {
		t.Fatalf("the guide has %d YAML blocks and %d commands", applied, typed)
	}
}

// Following docs/properties.md shows a namespace the clusters whose owners say that they are in
// a region; one that says so no longer leaves.
func TestPropertiesGuideWorksAsWritten(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	steps, err := guide.Read(journeys.Fleet, "properties.md", "Step by step")
	apitest.Must(t, err)
	reader := journeys.Newcomer(t)
	t.Cleanup(func() {
		if _, err := reader.Type(context.Background(),
			"kubectl --context kind-cluster1 delete --ignore-not-found -f docs/quickstart/property.yaml", ""); err != nil {
			t.Error(err)
		}
	})
	said := ""
	for _, step := range steps {
		line := step.Command
		if line == "" {
			line = "kubectl apply -f -"
			t.Cleanup(func() {
				if _, err := reader.Type(context.Background(), "kubectl delete --ignore-not-found --timeout=2m -f -", step.YAML); err != nil {
					t.Error(err)
				}
			})
		}
		apitest.Within(t, journeys.Eventually, line, func(ctx context.Context) (err error) {
			said, err = reader.Type(ctx, line, step.YAML)
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("it says nothing")
			}
			return err
		})
	}
	if strings.TrimSpace(said) != journeys.Cluster1 || len(steps) != 5 {
		t.Errorf("after %d steps the decision is %q", len(steps), said)
	}
	journeys.HasNoProfile(t, "my-region", journeys.Cluster2)
	_, err = reader.Type(t.Context(), "kubectl --context kind-cluster1 patch clusterproperty region.example.com "+
		`--type merge -p '{"spec":{"value":"us-west"}}'`, "")
	apitest.Must(t, err)
	journeys.HasNoProfile(t, "my-region", journeys.Cluster1)
}
