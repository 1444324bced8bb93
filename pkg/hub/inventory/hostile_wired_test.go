package inventory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// everyLabel is a patch that rewrites all labels that this addon writes to a profile.
func everyLabel(n int) string {
	return fmt.Sprintf(`{"metadata":{"labels":{
		"app.kubernetes.io/managed-by":"hostile-%[1]d","x-k8s.io/cluster-manager":"hostile-%[1]d",
		"open-cluster-management.io/cluster-name":"hostile-%[1]d","multicluster.x-k8s.io/inventory-member-id":"hostile-%[1]d",
		"multicluster.x-k8s.io/clusterset":"hostile-%[1]d","env":"hostile-%[1]d"}}}`, n)
}

// everyStatus is a patch that rewrites all of a profile's status that this addon writes.
func everyStatus(n int) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"version":{"kubernetes":"hostile-%[1]d"},
		"properties":[{"name":"x","value":"hostile-%[1]d"}],
		"accessProviders":[{"name":"open-cluster-management","cluster":{"server":"https://hostile-%[1]d"}}],
		"conditions":[{"type":"ControlPlaneHealthy","status":"False","reason":"Hostile","message":"%[1]d",
			"lastTransitionTime":"2026-03-03T03:03:03Z"}]}}`, n))
}

// Another client rewrites every field of one profile, and deletes another, all the time.
// Neither costs more than the rate that docs/operations.md states, and in the end both are
// correct.
func TestAHostileWriterCostsABoundedNumberOfWrites(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set := w.ExclusiveSet("set")
	rewritten, deleted := w.Namespace("rewritten", nil), w.Namespace("deleted", nil)
	labels := ocmtest.InSet(set.Name)
	labels["env"] = "prod"
	c := w.Cluster("c", labels, ocmtest.Claim("x", "1"))
	for _, namespace := range []string{rewritten, deleted} {
		w.Bind(namespace, set.Name)
	}
	proxy := throughProxy([]byte("CA"), c.Name)
	clock, wire := apitest.Ahead(watch.RestoreTime), &apitest.Wire{}
	startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{
		Guard: allowed, LabelAllow: []string{"env"}, Clock: clock,
		Access: &givenAccess{access.Decision{Proxy: access.ProviderState{Known: true, Provider: &proxy}}},
	})
	w.synced(c.Name)
	before := map[string]*inventoryv1alpha1.ClusterProfile{}
	for _, namespace := range []string{rewritten, deleted} {
		w.whole(namespace, c.Name)
		before[namespace] = w.Profile(namespace, c.Name)
	}
	wire.Reset()

	hostile := func(namespace string) *inventoryv1alpha1.ClusterProfile {
		return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name}}
	}
	began := time.Now()
	changes := apitest.Hostile(t, func(n int) error {
		spec := fmt.Appendf(nil, `{"spec":{"displayName":"hostile-%d"}}`, n)
		return errors.Join(
			w.Patch(t.Context(), hostile(rewritten), client.RawPatch(types.MergePatchType, []byte(everyLabel(n)))),
			w.Patch(t.Context(), hostile(rewritten), client.RawPatch(types.MergePatchType, spec)),
			w.Status().Patch(t.Context(), hostile(rewritten), everyStatus(n)),
			client.IgnoreNotFound(w.Delete(t.Context(), hostile(deleted))),
		)
	}, func() bool { return w.AddonCondition(c.Name, "ProfilesSynced").Reason == "Contested" })
	w.Eventually("the condition says that another client interferes", func() string {
		if got := w.AddonCondition(c.Name, "ProfilesSynced"); got.Reason != "Contested" ||
			got.Status != metav1.ConditionFalse {
			return fmt.Sprintf("it is %+v", got)
		}
		return ""
	})

	same := append(cmp.Options{
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Generation"),
		cmpopts.IgnoreFields(metav1.Condition{}, "ObservedGeneration"),
		cmpopts.IgnoreFields(inventoryv1alpha1.Property{}, "LastObservedTime"), // their values had changed
	}, sameProfile...)
	for namespace, want := range before {
		w.Eventually("the profile in "+namespace+" is right in the end", func() string {
			return cmp.Diff(want, w.Profile(namespace, c.Name), same)
		})
	}
	repairs := kube.RepairsAtOnce + int(time.Since(began)/kube.RepairEvery) + 1
	for namespace := range before {
		writes := 0
		for _, call := range wire.Writes("clusterprofiles", "clusterprofiles/status") {
			if call.Mentions(namespace) {
				writes++
			}
		}
		t.Logf("%s: %d hostile rounds, %d own writes", namespace, changes, writes)
		if writes == 0 || writes > 2*repairs {
			t.Errorf("%d writes in %s, want at most two for each of %d repairs", writes, namespace, repairs)
		}
	}

	// Once they have been left alone for long enough, nothing is wrong any more.
	clock.Set(watch.RestoreTime + time.Hour)
	for _, namespace := range []string{rewritten, deleted} {
		w.MustMerge(hostile(namespace), `{"metadata":{"annotations":{"theirs":"x"}}}`)
	}
	w.synced(c.Name)
}

// An occasional change is repaired at once, with one write each.
func TestOccasionalChangeIsOneWriteEach(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	for n := range 2 * kube.RepairsAtOnce {
		s.MustMerge(s.mine(), everyLabel(n))
		s.mustStep(patchMain)
		apitest.Must(t, s.Status().Patch(t.Context(), s.mine(), everyStatus(n)))
		s.later(2 * kube.RepairEvery)
		s.mustStep(patchStatus)
		s.later(2 * kube.RepairEvery)
		s.settled()
	}
}

// A burst is repaired ten times. Then the profile waits, and so does a deleted one; its
// removal, if it must go, does not.
func TestContestedProfileWaits(t *testing.T) {
	contend := func(t *testing.T) *stepper {
		s := newStepper(t, mapHub)
		s.mustStep(post, patchStatus)
		for n := range kube.RepairsAtOnce {
			s.MustMerge(s.mine(), everyLabel(n))
			s.mustStep(patchMain)
		}
		s.settled()
		return s
	}
	t.Run("it is changed again", func(t *testing.T) {
		s := contend(t)
		s.MustMerge(s.mine(), everyLabel(-1))
		if result := s.mustStep(); result.RequeueAfter != kube.RepairEvery {
			t.Errorf("looked at again after %s", result.RequeueAfter)
		}
		s.came(report.Contested, "another client keeps changing")
		s.later(kube.RepairEvery)
		if result := s.mustStep(patchMain); result.RequeueAfter <= 0 {
			t.Error("no check is scheduled of whether the changes have stopped")
		}
		s.came(report.Contested, "another client keeps changing")
		s.later(time.Minute)
		s.settled()
		s.came(report.InPlace, "")
	})
	t.Run("it is deleted", func(t *testing.T) {
		s := contend(t)
		s.MustDelete(s.mine())
		if result := s.mustStep(); result.RequeueAfter != kube.RepairEvery {
			t.Errorf("looked at again after %s", result.RequeueAfter)
		}
		s.later(kube.RepairEvery)
		s.mustStep(post, patchStatus)
	})
	t.Run("it must go", func(t *testing.T) {
		s := contend(t)
		s.MustMerge(s.mine(), everyLabel(-1))
		s.MustMerge(s.mine(), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"cluster-inventory-addon"}}}`)
		withdraw(s)
		s.mustStep(del)
	})
	t.Run("changes of the cluster are still written at once", func(t *testing.T) {
		s := contend(t)
		for n := range 2 * kube.RepairsAtOnce {
			s.claims(ocmtest.Claim("x", fmt.Sprint(n)))
			s.mustStep(patchStatus)
		}
	})
}
