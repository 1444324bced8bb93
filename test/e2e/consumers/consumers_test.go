package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

// The cases share a world, because starting its servers takes most of the time.
func TestConsumers(t *testing.T) {
	w := newWorld(t)
	t.Run("the lister lists every cluster", func(t *testing.T) { testLister(t, w) })
	t.Run("the lister skips a cluster without an account", func(t *testing.T) { testListerWithoutToken(t, w) })
	t.Run("SIG-Multicluster's secretreader reads the copies", func(t *testing.T) { testSecretreader(t, w) })
	t.Run("a write of a profile restarts what compares configurations", func(t *testing.T) { testRestarts(t, w) })
	t.Run("the reconciler works on, whatever happens to tokens and profiles", func(t *testing.T) { testReconciler(t, w) })
}

func testLister(t *testing.T, w *world) {
	output, err := w.command(t, "lister", "-clusterprofile-provider-file="+w.providerFile(t)).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	listed := lines(t, output)
	for _, cluster := range []string{"cluster1", "cluster2"} {
		if !slices.Contains(listed[team+"/"+cluster], workNamespace) {
			t.Errorf("%s has the namespaces %v, want %s among them", cluster, listed[team+"/"+cluster], workNamespace)
		}
	}
}

func testListerWithoutToken(t *testing.T, w *world) {
	run := func() (output []byte, said string, err error) {
		cmd := w.command(t, "lister", "-clusterprofile-provider-file="+w.providerFile(t))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		output, err = cmd.Output()
		return output, stderr.String(), err
	}
	w.hub.In(t).MustDelete(tokenOf("cluster2"))
	defer w.rotate(t, "cluster2")
	output, said, err := run()
	if err != nil || len(lines(t, output)[team+"/cluster1"]) == 0 {
		t.Errorf("cluster1 is not listed: %v: %s", err, output)
	}
	const skipped = `"profile":"team/cluster2","skipped":"this program has no account on the cluster: `
	if !strings.Contains(string(output), skipped) || !strings.Contains(said, "there is no Secret team/cluster2-reader") {
		t.Errorf("it does not say that it skips cluster2: %s%s", output, said)
	}
	w.hub.In(t).MustDelete(tokenOf("cluster1"))
	defer w.rotate(t, "cluster1")
	if _, said, err = run(); err == nil || !strings.Contains(said, "has an account on none of the 2 clusters in namespace team") {
		t.Errorf("without any account it ends with %v: %s", err, said)
	}
}

// SIG-Multicluster's plugin finds the copies through access providers of its own, which
// another client adds to the profiles beside ours.
func testSecretreader(t *testing.T, w *world) {
	for _, cluster := range []string{"cluster1", "cluster2"} {
		apitest.EditStatus(w.hub.In(t), newProfile(cluster), func(profile *inventoryv1alpha1.ClusterProfile) {
			entry := *profile.Status.AccessProviders[0].DeepCopy()
			entry.Name = "secretreader"
			entry.Cluster.Extensions[0].Extension.Raw = fmt.Appendf(nil, `{"clusterName":%q}`, tokenOf(cluster).Name)
			profile.Status.AccessProviders = append(profile.Status.AccessProviders, entry)
		})
	}
	cmd := w.command(t, "lister", "-clusterprofile-provider-file="+w.providersFile(t, "secretreader", "plugin"))
	// The plugin takes its namespace from the kubeconfig alone.
	cmd.Env = append(cmd.Env, "KUBECONFIG="+apitest.File(t, "kubeconfig", apitest.Kubeconfig(t, w.user, team)))
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	listed := lines(t, output)
	for _, cluster := range []string{"cluster1", "cluster2"} {
		if !slices.Contains(listed[team+"/"+cluster], workNamespace) {
			t.Errorf("%s has the namespaces %v, want %s among them", cluster, listed[team+"/"+cluster], workNamespace)
		}
	}
}

func testReconciler(t *testing.T, w *world) {
	clusters := []string{"cluster1", "cluster2"}
	for _, cluster := range clusters {
		w.want(t, cluster, "one")
	}
	report := w.reconcile(t, "-clusterprofile-provider-file="+w.providerFile(t, "--max-cache=1s"))
	for _, cluster := range clusters {
		w.done(t, cluster, "one")
	}

	for _, cluster := range clusters {
		w.rotate(t, cluster)
		w.touch(t, cluster, "twice")
	}
	apitest.Within(t, soon, "both clusters see new tokens", func(context.Context) error {
		for name, cluster := range report() {
			if cluster.Tokens < 2 {
				return fmt.Errorf("%s saw %d", name, cluster.Tokens)
			}
		}
		return nil
	})
	for _, cluster := range clusters {
		w.want(t, cluster, "two")
		w.done(t, cluster, "two")
	}
	told := report()
	for _, cluster := range clusters {
		undisturbed(t, cluster, told[team+"/"+cluster])
	}

	// The reconciler follows changes that affect the connection.
	w.hub.In(t).MustDelete(newProfile("cluster2"))
	apitest.Within(t, soon, "cluster2 is disengaged", func(context.Context) error {
		if report()[team+"/cluster2"].Engaged {
			return errors.New("it is engaged")
		}
		return nil
	})
	w.publish(t, "cluster2")
	w.want(t, "cluster2", "three")
	w.done(t, "cluster2", "three")
	// The engagement that ends may have done this work.
	apitest.Within(t, soon, "cluster2 is engaged for the second time", func(context.Context) error {
		told = report()
		if again := told[team+"/cluster2"]; again.Engagements != 2 || !again.Engaged {
			return fmt.Errorf("it is %+v", again)
		}
		return nil
	})
	undisturbed(t, "cluster1", told[team+"/cluster1"])
}

func undisturbed(t *testing.T, name string, cluster status.Cluster) {
	t.Helper()
	if cluster.Engagements != 1 || !cluster.Engaged || cluster.Failed != 0 ||
		cluster.Reconciles == 0 || cluster.Answers["200"] == 0 {
		t.Errorf("%s: %+v, want one engagement, work, and no failed request", name, cluster)
	}
}

// lines returns the namespaces that the lister prints, by profile.
func lines(t *testing.T, output []byte) map[string][]string {
	t.Helper()
	listed := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var line struct {
			Profile    string
			Namespaces []string
		}
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return listed
		} else if err != nil {
			t.Fatal(err)
		}
		listed[line.Profile] = line.Namespaces
	}
}
