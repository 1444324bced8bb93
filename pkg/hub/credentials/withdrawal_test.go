package credentials

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestDefiniteNoWithdrawsTheCopy(t *testing.T) {
	for name, take := range map[string]func(s *scene){
		"the label is taken off": func(s *scene) {
			apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
		},
		"the label says otherwise": func(s *scene) {
			apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels[syncLabel] = "false" })
		},
		"another namespace is named": func(s *scene) {
			apitest.Edit(s.world, s.account,
				func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = "elsewhere" })
		},
		"no namespace is named": func(s *scene) {
			apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil })
		},
		"the account is deleted": func(s *scene) { s.MustDelete(s.account) },
		"the rule says no": func(s *scene) {
			s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is not bound there"})
		},
		"the token is taken back": func(s *scene) {
			apitest.EditStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil })
		},
		"the status says the token expired": func(s *scene) {
			s.ReportToken(s.account, "reader", time.Now().Add(-time.Second))
		},
		"the status names another Secret": func(s *scene) { s.ReportToken(s.account, "other", time.Now().Add(time.Hour)) },
		"the profile is another manager's": func(s *scene) {
			s.MustDelete(s.profile)
			other := ocmtest.OurProfile(s.team, s.cluster)
			other.Spec.ClusterManager.Name = "somebody-else"
			s.MustCreate(other)
			s.hasNoCopy(s.team, s.cluster, "reader")
		},
		"the account is deleted but held by a finalizer": func(s *scene) {
			apitest.Edit(s.world, s.account,
				func(a *authv1beta1.ManagedServiceAccount) { a.Finalizers = []string{"example.com/hold"} })
			s.MustDelete(s.account)
		},
		"the profile is deleted but held by a finalizer": func(s *scene) {
			apitest.Edit(s.world, s.profile,
				func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = []string{"example.com/hold"} })
			s.MustDelete(s.profile)
			s.hasNoCopy(s.team, s.cluster, "reader")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			// A client that wants to keep the copy also holds it.
			apitest.Edit(s.world, s.copied(), func(c *corev1.Secret) { c.Finalizers = []string{"example.com/keep"} })
			take(s)
			s.withdrawn()
		})
	}
}

func TestUnknownKeepsTheCopyAndCreatesNone(t *testing.T) {
	s := newScene(t)
	another := s.world.team()
	s.MustCreate(ocmtest.OurProfile(another, s.cluster))
	s.rule.say(another, s.cluster, selection.Result{Why: "awaits a decision"})
	s.rule.say(s.team, s.cluster, selection.Result{Why: "awaits a decision"})
	apitest.Edit(s.world, s.account,
		func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + another })
	s.mentions(s.cluster, "SelectionUnknown", "Account reader is left as it is in",
		another, s.team, "the cluster awaits a decision")

	// The existing copy is kept up to date.
	s.token = s.Rotate(s.account)
	s.copied()
	s.Stays(quietly, "no copy is made", func() string {
		if s.world.copied(another, s.cluster, "reader") != nil {
			return "a copy was made though nothing is known"
		}
		return ""
	})
	s.bound(another, targetRole, false)

	// An error does not mean No, either.
	s.MustDelete(s.copied())
	s.Stays(quietly, "no copy is made", func() string {
		if s.world.copied(s.team, s.cluster, "reader") != nil {
			return "a copy was recreated though nothing is known"
		}
		return ""
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.Yes})
	s.copied()
}

// A tenant of a namespace with copies can label any Secret there as one of another account. While the selection
// is unknown, such a Secret must not be taken for a copy that is to be kept up to date.
func TestAPlantedCopyGetsNoTokenWhileTheSelectionIsUnknown(t *testing.T) {
	s := newScene(t)
	victim := s.world.cluster(s.Name("victim"))
	s.rule.say(s.team, victim, selection.Result{Why: "cannot be selected: the set does not exist"})
	account := s.Account(victim, "reader", s.team)
	token := s.Rotate(account)
	s.Eventually("the cache has the account's token", func() string {
		if cached, _, err := s.creds.accounts.Get(t.Context(), client.ObjectKeyFromObject(account)); isIncomplete(cached) {
			return fmt.Sprintf("%v, %v", cached, err)
		}
		return ""
	})
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.team, Name: victim + "-reader", Labels: target.Labels(),
			Annotations: map[string]string{
				contract.AnnotationSourceCluster: victim, contract.AnnotationSourceAccount: "reader",
			},
		},
		Data: map[string][]byte{"token": []byte("mine")},
	}
	s.MustCreate(planted)
	key := client.ObjectKeyFromObject(planted)
	s.Eventually("the Secret is seen", func() string {
		if s.seenVersion(key) != planted.ResourceVersion {
			return "not yet"
		}
		return ""
	})
	s.mentions(victim, "SelectionUnknown", "Account reader is left as it is in", s.team)
	s.Stays(quietly, "the Secret stays the tenant's", func() string {
		s.MustGet(planted)
		if string(planted.Data["token"]) != "mine" {
			return "it holds the token of another cluster"
		}
		return ""
	})
	// A copy that the manager wrote before is kept up to date meanwhile.
	s.rule.say(s.team, s.cluster, selection.Result{Why: "awaits a decision"})
	s.token = s.Rotate(s.account)
	s.copied()

	s.publish(s.team, victim)
	s.rule.say(s.team, victim, selection.Result{Answer: selection.Yes})
	s.holds(s.team, victim, "reader", token)
}

func TestTransientErrorsOfTheAccountsAgentWithdrawNothing(t *testing.T) {
	s := newScene(t)
	apitest.EditStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Status.Conditions = []metav1.Condition{{
			Type: "TokenReported", Status: "False", Reason: "TokenReportFailed", LastTransitionTime: metav1.Now(),
		}}
	})
	before := s.copied()
	s.Stays(quietly, "the copy is kept", func() string {
		if got := s.world.copied(s.team, s.cluster, "reader"); got == nil || got.UID != before.UID {
			return "the copy was withdrawn"
		}
		return ""
	})
}

// TestARevocationDoesNotWaitForFirstCopies withdraws one copy while many others are still
// to be created.
func TestARevocationDoesNotWaitForFirstCopies(t *testing.T) {
	s := newScene(t)
	s.stop()
	// A few are created, and then the namespace has its maximum in flight, until one was
	// withdrawn.
	const few, inFlight, many = 20, 8, 60
	for i := range many {
		c := s.world.cluster(s.Name(fmt.Sprintf("d%d", i)))
		s.publish(s.team, c)
		s.world.account(c, "reader", s.team)
	}
	var posts atomic.Int64
	withdrawn := make(chan struct{})
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "secrets" && posts.Add(1) > few {
			return apitest.Fault{Until: withdrawn}
		}
		return apitest.Fault{}
	})
	s.wire.Reset()
	s.opts.WorkersPerNamespace = inFlight
	s.start()
	s.Eventually("first copies wait for each other", func() string {
		if posts.Load() < few+inFlight {
			return "more may be in flight"
		}
		return ""
	})
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.hasNoCopy(s.team, s.cluster, "reader")
	close(withdrawn)
	s.Eventually("all copies are made", func() string {
		if got := s.creds.ledger.Count(s.team); got != many {
			return fmt.Sprintf("%d copies of %d", got, many)
		}
		return ""
	})
	calls := s.wire.Writes("secrets")
	before := slices.IndexFunc(calls, func(call apitest.Call) bool { return call.Method == http.MethodDelete })
	t.Logf("withdrawn after %d of %d writes", before, len(calls))
	if before > few+inFlight {
		t.Errorf("withdrawn after %d of %d writes", before, len(calls))
	}
	// controller-runtime's priority queue may never end if it is shut down while many
	// workers are busy (kubernetes-sigs/controller-runtime#3538).
	s.wire.Settle(t, apitest.Patience, 500*time.Millisecond)
}

func TestLeftoversAreFoundAfterARestart(t *testing.T) {
	for name, change := range map[string]func(s *scene){
		"of a deleted account": func(s *scene) { s.MustDelete(s.account) },
		"of an account that is off": func(s *scene) {
			apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil })
		},
		"of a rule that says no": func(s *scene) {
			s.rule.answers[types.NamespacedName{Namespace: s.team, Name: s.cluster}] = selection.Result{Answer: selection.No,
				Why: "is out"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settled()
			s.stop()
			change(s)
			s.start()
			s.withdrawn()
		})
	}
}

// A manager that runs as another service account than the one before finds what that one
// left.
func TestLeftoversOfAnotherServiceAccountAreFound(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.stop()
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil })
	for _, at := range []types.NamespacedName{{Namespace: s.team, Name: targetRole},
		{Namespace: s.cluster, Name: sourceRole}} {
		apitest.Edit(s.world, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Namespace = "elsewhere"
		})
	}
	s.start()
	s.withdrawn()
}

func TestADraining(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.stop()
	disabled := s.opts
	disabled.Mode = ModeDisabled
	_, err := Add(t.Context(), s.mgr, disabled)
	if err == nil || !strings.Contains(err.Error(), s.team) || !strings.Contains(err.Error(), "set the mode to draining") {
		t.Errorf("disabled with a copy about: %v", err)
	}
	s.opts.Mode = ModeDraining
	s.start()
	s.withdrawn()
	s.says(s.cluster, "False", "Draining",
		"Copies of tokens are being removed, and none are created: the manager runs with credentials.mode=draining.")
	s.Rotate(s.account)
	s.Stays(quietly, "no copy is made", func() string {
		if s.world.copied(s.team, s.cluster, "reader") != nil {
			return "a copy was made"
		}
		return ""
	})
	s.stop()
	if _, err := Add(t.Context(), s.mgr, disabled); err != nil {
		t.Errorf("disabled with nothing about: %v", err)
	}
	// A tenant's RoleBinding that only looks like the manager's gives the manager nothing.
	s.MustCreate(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole, Labels: target.Labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
	})
	s.wire.Reset()
	if _, err := Add(t.Context(), s.mgr, disabled); err != nil {
		t.Errorf("disabled with a tenant's RoleBinding: %v", err)
	}
	lists := 0 // of no others, and not of all at once
	for _, call := range s.wire.Calls() {
		if call.Resource != "rolebindings" || call.Method != http.MethodGet {
			continue
		}
		lists++
		if call.Query.Get("limit") == "" || call.Query.Get("fieldSelector") != "metadata.name="+targetRole {
			t.Errorf("it lists RoleBindings by %v", call.Query)
		}
	}
	if lists == 0 {
		t.Error("it lists no RoleBindings")
	}
}

// TestAWithdrawnCopyIsNotRestored has another manager withdraw a copy that this one believes to be
// there and is about to update: a paused leader, for instance, which does not know yet that it is
// no longer the leader, and whose caches still show the old binding.
func TestAWithdrawnCopyIsNotRestored(t *testing.T) {
	s := newScene(t)
	s.stop()
	copied := s.copied()
	s.token = s.Rotate(s.account)
	s.rule.lag(true)
	var once sync.Once
	s.wire.Reset()
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodGet && strings.HasSuffix(call.Path, "/"+s.team+"/secrets/"+copied.Name) {
			once.Do(func() { s.MustDelete(copied) })
		}
		return apitest.Fault{}
	})
	s.start()
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.Stays(quietly, "the copy stays away", func() string { return strings.Join(s.wire.Sent("secrets"), ", ") })
	s.rule.lag(false)
	s.settled()
}
