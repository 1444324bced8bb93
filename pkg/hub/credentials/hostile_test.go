package credentials

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Another client rewrites all of one copy, deletes another, and takes the manager's rights
// to a third away, all the time. None of it costs more than the rate that
// docs/operations.md states, and in the end all are correct.
func TestAHostileWriterCostsABoundedNumberOfWrites(t *testing.T) {
	s := newScene(t)
	rewritten, deleted, unbound := s.team, s.world.team(), s.world.team()
	for _, team := range []string{deleted, unbound} {
		s.publish(team, s.cluster)
	}
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Annotations[targetAnnotation] = rewritten + "," + deleted + "," + unbound
	})
	teams := []string{rewritten, deleted, unbound}
	for _, team := range teams {
		s.holds(team, s.cluster, "reader", s.token)
	}
	s.followed(teams...)
	s.settled()
	s.wire.Reset()

	secretIn := func(team string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: s.cluster + "-reader"}}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: unbound, Name: targetRole}}
	contested := "another client keeps changing Secret " + rewritten + "/" + s.cluster + "-reader"
	began := time.Now()
	rounds := apitest.Hostile(t, func(n int) error {
		// One of the two ways in turn, so that the labels, too, are seen to change.
		labels := `{"inventory.open-cluster-management.io/credential":"true","app.kubernetes.io/managed-by":"cluster-inventory-addon"}`
		if n%2 == 0 {
			labels = `{"inventory.open-cluster-management.io/credential":null,"app.kubernetes.io/managed-by":"hostile"}`
		}
		secret := fmt.Appendf(nil, `{"metadata":{"labels":%s,"annotations":{"inventory.open-cluster-management.io/expires":"hostile-%d",
			"inventory.open-cluster-management.io/source-account":"reader"},"ownerReferences":[]},
			"stringData":{"token":"hostile-%d","ca.crt":"hostile","more":"hostile"}}`, labels, n, n)
		subjects := fmt.Appendf(nil, `{"subjects":[{"kind":"ServiceAccount","namespace":"hostile","name":"hostile-%d"}]}`, n)
		return errors.Join(
			client.IgnoreNotFound(s.Patch(t.Context(), secretIn(rewritten), client.RawPatch(types.MergePatchType, secret))),
			client.IgnoreNotFound(s.Delete(t.Context(), secretIn(deleted))),
			client.IgnoreNotFound(s.Patch(t.Context(), binding.DeepCopy(), client.RawPatch(types.MergePatchType, subjects))),
		)
	}, func() bool { return strings.Contains(s.condition(s.cluster).Message, contested) })
	s.mentions(s.cluster, "Contested", contested)

	s.Eventually("all are right in the end", func() string {
		for _, team := range teams {
			got := s.world.copied(team, s.cluster, "reader")
			if got == nil || string(got.Data["token"]) != s.token || len(got.Data) != 2 || len(got.OwnerReferences) != 1 ||
				got.Labels["app.kubernetes.io/managed-by"] != "cluster-inventory-addon" {
				return fmt.Sprintf("the copy in %s: exists %t; condition %+v", team, got != nil, s.condition(s.cluster))
			}
		}
		got := &rbacv1.RoleBinding{ObjectMeta: binding.ObjectMeta}
		if s.MustGet(got); len(got.Subjects) != 1 || got.Subjects[0].Name != managerName {
			return fmt.Sprintf("the RoleBinding is for %v", got.Subjects)
		}
		return ""
	})
	repairs := kube.RepairsAtOnce + int(time.Since(began)/kube.RepairEvery) + 1
	for _, team := range teams {
		writes, reads := 0, 0
		for _, call := range s.wire.Calls() {
			switch {
			case !call.Mentions(team):
			case call.IsWrite():
				writes++
			case call.Resource == "secrets" && call.Method == http.MethodGet &&
				!call.IsWatch() && !call.Query.Has("labelSelector"):
				reads++
			}
		}
		t.Logf("%s: %d hostile rounds, %d own writes, %d reads of the copy", team, rounds, writes, reads)
		if writes == 0 || writes > 2*repairs || reads > 2*repairs {
			t.Errorf("%d writes and %d reads in %s, want at most two for each of %d repairs", writes, reads, team, repairs)
		}
	}
	// The account's other copies, and a new token, do not wait for any of it.
	s.token = s.Rotate(s.account)
	for _, team := range teams {
		s.holds(team, s.cluster, "reader", s.token)
	}
}

// A right that ends is revoked at once, however contested the copy is.
func TestAWithdrawalDoesNotWaitForContention(t *testing.T) {
	s := newStepper(t)
	s.time.Hold() // no time passes in which another repair is allowed
	v := s.still(s.Name("c"))
	v.converge(v.there)
	v.watched()
	harm := func() {
		v.T.Helper()
		apitest.Edit(v.world, v.copied(v.team, v.cluster, "reader"), func(c *corev1.Secret) { c.Data["token"] = []byte("x") })
		v.caughtUp()
	}
	for range kube.RepairsAtOnce {
		harm()
		if _, err := v.step(); err != nil {
			t.Fatal(err)
		}
		v.caughtUp()
	}
	harm()
	v.wire.Reset()
	if result, err := v.step(); err != nil || len(v.wire.Sent("secrets")) > 0 ||
		result.RequeueAfter <= 0 || result.RequeueAfter > kube.RepairEvery {
		t.Errorf("%+v, %v; wrote %v", result, err, v.wire.Sent("secrets"))
	}
	v.mentions(v.cluster, "Contested", v.cluster+"-reader")
	apitest.Edit(v.world, v.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	v.caughtUp()
	v.converge(v.gone)
}
