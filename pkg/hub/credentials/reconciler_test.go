package credentials

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	postBinding   = "POST rolebindings"
	patchBinding  = "PATCH rolebindings"
	deleteBinding = "DELETE rolebindings"
	postSecret    = "POST secrets"
	patchSecret   = "PATCH secrets"
	deleteSecret  = "DELETE secrets"
)

// story is one scenario for the reconcilers.
type story struct {
	// first is true when there is no copy before the story begins.
	first bool

	// act changes something on the hub, as a user or the account's agent would.
	act func(v *still)

	// done says what is not yet as it should be in the end.
	done func(v *still) string

	// writes are the manager's writes for it, sorted.
	writes []string

	// late is true if a round before the watches have caught up may write more.
	late bool
}

func onAccount(change func(*authv1beta1.ManagedServiceAccount)) func(*still) {
	return func(v *still) { apitest.Edit(v.world, v.account, change) }
}

func onCopy(change func(*corev1.Secret)) func(*still) {
	return func(v *still) { apitest.Edit(v.world, v.copied(v.team, v.cluster, "reader"), change) }
}

func onBinding(change func(*rbacv1.RoleBinding)) func(*still) {
	return func(v *still) {
		apitest.Edit(v.world, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: v.team, Name: targetRole}}, change)
	}
}

var withdrawal = []string{deleteBinding, deleteBinding, deleteSecret}

// stories are those with one account and one copy.
var stories = map[string]story{
	"a first copy": {
		first: true, act: func(*still) {}, done: (*still).there,
		writes: []string{postBinding, postBinding, postSecret},
	},
	"a rotation": {
		act: func(v *still) { v.token = v.Rotate(v.account) }, done: (*still).there,
		writes: []string{patchSecret},
	},
	"the label is taken off": {
		act: onAccount(func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) }), done: (*still).gone,
		writes: withdrawal,
	},
	"the annotation names another namespace": {
		act:    onAccount(func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = "elsewhere" }),
		done:   (*still).gone,
		writes: withdrawal,
	},
	"the account is deleted": {
		act: func(v *still) { v.MustDelete(v.account) }, done: (*still).gone,
		writes: withdrawal,
	},
	"the status says the token has expired": {
		act: func(v *still) { v.ReportToken(v.account, "reader", time.Now().Add(-time.Second)) }, done: (*still).gone,
		writes: withdrawal,
	},
	"the status names no Secret": {
		act: func(v *still) {
			apitest.EditStatus(v.world, v.account, func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil })
		}, done: (*still).gone,
		writes: withdrawal,
	},
	"the token read is expired": {
		act: func(v *still) {
			v.StoreToken(v.account, ocmtest.Token(time.Now().Add(-time.Minute)), ocmtest.CA())
			v.ReportToken(v.account, "reader", later())
		},
		// The source is read again, so the right to read it stays.
		done: func(v *still) string {
			binding := client.ObjectKey{Namespace: v.team, Name: targetRole}
			switch err := v.Get(v.T.Context(), binding, &rbacv1.RoleBinding{}); {
			case v.copied(v.team, v.cluster, "reader") != nil:
				return "the copy is there"
			case !apierrors.IsNotFound(err):
				return fmt.Sprintf("RoleBinding %s: %v", binding, err)
			default:
				return ""
			}
		},
		writes: []string{deleteBinding, deleteSecret},
	},
	"time passes the token's expiry": {
		act: func(v *still) { v.time.Set(2 * time.Hour) }, done: (*still).gone,
		writes: withdrawal,
	},
	"the namespace no longer selects the cluster": {
		act:    func(v *still) { v.rule.say(v.team, v.cluster, selection.Result{Answer: selection.No, Why: "is out"}) },
		done:   (*still).gone,
		writes: withdrawal,
	},
	"a copy held by a finalizer is withdrawn": {
		act: func(v *still) {
			onCopy(func(c *corev1.Secret) { c.Finalizers = []string{"example.com/keep"} })(v)
			onAccount(func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })(v)
		}, done: (*still).gone,
		writes: []string{deleteBinding, deleteBinding, deleteSecret, patchSecret}, late: true,
	},
	"a copy recreated by another client is withdrawn": {
		act: func(v *still) {
			c := v.copied(v.team, v.cluster, "reader")
			v.MustDelete(c)
			c.ObjectMeta = metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: c.Annotations}
			v.MustCreate(c)
			onAccount(func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })(v)
		}, done: (*still).gone,
		writes: withdrawal,
	},
	"an altered copy is repaired": {
		act:    onCopy(func(c *corev1.Secret) { c.Data = map[string][]byte{"token": []byte("x"), "more": []byte("y")} }),
		done:   (*still).there,
		writes: []string{patchSecret},
	},
	"a copy without labels and annotations is repaired": {
		act: onCopy(func(c *corev1.Secret) { c.Labels, c.Annotations = nil, nil }), done: (*still).there,
		writes: []string{patchSecret},
	},
	"a deleted copy is recreated": {
		act: func(v *still) { v.MustDelete(v.copied(v.team, v.cluster, "reader")) }, done: (*still).there,
		writes: []string{postSecret},
	},
	"an immutable copy is replaced": {
		act:    onCopy(func(c *corev1.Secret) { c.Immutable = ptr.To(true); c.Data["token"] = []byte("x") }),
		done:   (*still).there,
		writes: []string{deleteSecret, postSecret},
	},
	"an immutable copy held by a finalizer is replaced": {
		act: onCopy(func(c *corev1.Secret) {
			c.Immutable, c.Finalizers, c.Data["token"] = ptr.To(true), []string{"example.com/keep"}, []byte("x")
		}), done: (*still).there,
		writes: []string{deleteSecret, patchSecret, postSecret},
	},
	"a foreign Secret is left alone": {
		first: true,
		act: func(v *still) {
			v.MustCreate(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.team,
				Name: v.copyKey().Name, Labels: map[string]string{"theirs": "x"}}})
		},
		done: func(v *still) string {
			got := v.copied(v.team, v.cluster, "reader")
			if got == nil || len(got.Data) > 0 || len(got.OwnerReferences) > 0 || len(got.Labels) != 1 {
				return fmt.Sprintf("the foreign Secret is %+v", got)
			}
			if reason := v.condition(v.cluster).Reason; reason != "ForeignSecret" {
				return "the condition says " + reason
			}
			return ""
		},
		writes: []string{postBinding, postBinding},
	},
	"a RoleBinding that was deleted is recreated": {
		act: func(v *still) {
			v.MustDelete(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: v.team, Name: targetRole}})
			v.time.Set(kube.StaleAfter) // it is not awaited any more, as where its deletion is watched
		},
		done: (*still).granted, writes: []string{postBinding},
	},
	"a RoleBinding's subjects are corrected": {
		act:  onBinding(func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "somebody" }),
		done: (*still).granted, writes: []string{patchBinding},
	},
}

// granted says what is wrong with the team's RoleBinding.
func (v *still) granted() string {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: v.team, Name: targetRole}}
	if err := v.Get(v.T.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
		return err.Error()
	}
	return cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
		binding.Subjects)
}

// play runs a story on its own cluster.
func (s *stepper) play(name string, what story) *still {
	s.T.Helper()
	v := s.still(s.Name(name))
	if !what.first {
		v.converge(v.there)
		v.watched()
	}
	s.T.Cleanup(func() { s.time.Set(0) })
	what.act(v)
	v.caughtUp()
	return v
}

// TestStories runs every story without failures: what is written, and that one more step,
// even before the watches report it, writes nothing.
func TestStories(t *testing.T) {
	s := newStepper(t)
	defer func(whole *ocmtest.Hub) { s.Hub = whole }(s.Hub)
	names := 0
	for name, what := range stories {
		t.Run(name, func(t *testing.T) {
			s.Hub = s.In(t)
			names++
			v := s.play(fmt.Sprintf("s%d", names), what)
			v.wire.Reset()
			for range 2 {
				if err := v.round(); err != nil {
					t.Fatal(err)
				}
				if what.late {
					v.caughtUp()
				}
			}
			got := v.converge(func() string { return what.done(v) })
			if diff := cmp.Diff(what.writes, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			v.quietNow()
		})
	}
}

// TestStoriesWithFailures makes each write of each story fail once, in every possible way.
func TestStoriesWithFailures(t *testing.T) {
	faults := map[string]apitest.Fault{
		"a conflict":    {Status: 409, Reason: "Conflict", Message: "conflict"},
		"a lost answer": {Err: errors.New("connection reset"), AfterServer: true},
		"unavailable":   {Status: 503, Reason: "ServiceUnavailable", Message: "unavailable"},
		"forbidden":     {Status: 403, Reason: "Forbidden", Message: "forbidden"},
	}
	s := newStepper(t)
	defer func(whole *ocmtest.Hub) { s.Hub = whole }(s.Hub)
	names := 0
	for name, what := range stories {
		for fault, answer := range faults {
			for n := range what.writes {
				t.Run(fmt.Sprintf("%s, %s, write %d", name, fault, n+1), func(t *testing.T) {
					s.Hub = s.In(t)
					names++
					v := s.play(fmt.Sprintf("f%d", names), what)
					v.wire.Reset()
					v.wire.FailNthWrite(n+1, answer)
					v.converge(func() string { return what.done(v) })
					v.wire.Fail(nil)
					v.quietNow()
				})
			}
		}
	}
}

// TestSourceErrorWithdrawsNothing: an unreadable source means nothing.
func TestSourceErrorWithdrawsNothing(t *testing.T) {
	for name, answer := range map[string]apitest.Fault{
		"forbidden":   {Status: 403, Reason: "Forbidden", Message: "forbidden"},
		"unavailable": {Status: 503, Reason: "ServiceUnavailable", Message: "unavailable"},
		"lost":        {Err: errors.New("connection reset")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t)
			v := s.still(s.Name("c"))
			v.converge(v.there)
			v.watched()
			v.token = v.Rotate(v.account)
			v.caughtUp()
			source := "/api/v1/namespaces/" + v.cluster + "/secrets/reader"
			v.wire.Reset()
			v.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.Path == source {
					return answer
				}
				return apitest.Fault{}
			})
			for range 3 {
				if result, err := v.step(); err == nil && result.RequeueAfter == 0 {
					t.Error("nothing is retried")
				} else if err != nil && strings.Contains(err.Error(), v.token) {
					t.Error("the error quotes the token")
				}
			}
			if got := v.wire.Writes("secrets"); len(got) > 0 {
				t.Errorf("writes: %v", apitest.Summarize(got))
			}
			v.wire.Fail(nil)
			if got := v.converge(v.there); slices.Contains(got, deleteSecret) {
				t.Errorf("writes: %v", got)
			}
			v.quietNow()
		})
	}
}

// A wrong clock is corrected, and only time shows that.
func TestTokenExpiredByAWrongClockIsCopiedAgain(t *testing.T) {
	for name, expires := range map[string]func(v *still, at time.Time){
		"by the account's status": func(v *still, at time.Time) { v.ReportToken(v.account, "reader", at) },
		"by the token itself": func(v *still, at time.Time) {
			v.token = ocmtest.Token(at)
			v.StoreToken(v.account, v.token, ocmtest.CA())
			v.ReportToken(v.account, "reader", at.Add(100*24*time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t)
			v := s.still(s.Name("expired"))
			expires(v, later())
			v.caughtUp()
			v.converge(v.there)
			v.watched()
			v.time.Set(24 * time.Hour)
			v.converge(func() string {
				if v.copied(v.team, v.cluster, "reader") != nil {
					return "the copy is there"
				}
				return ""
			})
			result, err := v.step()
			if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
				t.Errorf("looked at again after %s, error %v", result.RequeueAfter, err)
			}
			v.time.Set(0)
			v.converge(v.there)
			v.quietNow()
		})
	}
}

// The namespace is deleted unseen: neither its copies nor its RoleBinding are seen, because
// the right to see them was deleted with it.
func TestNamespaceDeletedUnseenIsForgotten(t *testing.T) {
	for name, answer := range map[string]selection.Result{
		"the rule knows that it is gone":      {Answer: selection.No, Why: "is out"},
		"the rule has not heard of it either": {Answer: selection.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t)
			v := s.still(s.Name("lost"))
			v.converge(v.there)
			v.watched()
			if len(v.creds.ledger.NamespacesOf(v.accountKey())) != 1 {
				t.Fatal("the ledger does not know the copy")
			}
			v.unseen()
			v.rule.say(v.team, v.cluster, answer)

			v.wire.Reset()
			for range 3 {
				if err := v.round(); err != nil {
					t.Errorf("round: %v", err)
				}
			}
			if got := v.wire.Sent("secrets"); len(got) > 0 {
				t.Errorf("writes of Secrets: %v", got)
			}
			if got := v.creds.ledger.NamespacesOf(v.accountKey()); len(got) > 0 {
				t.Errorf("copies are still known in %v", got)
			}
			if got := v.condition(v.cluster); got.Reason == "CopyFailed" {
				t.Errorf("condition %+v", got)
			}
			if answer.Answer == selection.No {
				v.quietNow()
			}
		})
	}
}

// unseen deletes the team's namespace with its contents, which no watch reports, since the
// rights to watch are deleted first.
func (v *still) unseen() {
	v.T.Helper()
	v.creds.followers.Unfollow(v.team)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: v.team, Name: targetRole}}
	v.MustDelete(v.copied(v.team, v.cluster, "reader"), v.profile, binding)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.team}}
	v.MustDelete(namespace)
	v.MustGet(namespace)
	namespace.Spec.Finalizers = nil // as the namespace controller does when nothing is left
	apitest.Must(v.T, v.SubResource("finalize").Update(v.T.Context(), namespace))
	v.EventuallyGone(namespace)
	v.time.Set(time.Minute) // what was made is not awaited any more
	v.Eventually("the cache has lost the RoleBinding", func() string {
		if err := v.creds.bindings.Get(v.T.Context(), client.ObjectKeyFromObject(binding),
			binding); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("RoleBinding: %v", err)
		}
		return ""
	})
}

// A manager that has just started says nothing about an account before the rule can be applied, nor
// while its token is missing for a moment then: the condition stays as it was.
func TestNothingIsReportedBeforeTheRuleIsReady(t *testing.T) {
	s := newStepper(t)
	v := s.still(s.Name("early"))
	v.rule.say(v.team, v.cluster, selection.Result{Why: "has not been evaluated yet", Untrusted: true, NotReady: true})
	said := func(when string) {
		t.Helper()
		if _, err := v.step(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if of := v.creds.outcomes.Of(v.cluster); len(of) > 0 {
			t.Errorf("%s: the condition would be of %v", when, of)
		}
	}
	said("before the rule is prepared")
	v.rule.say(v.team, v.cluster, selection.Result{Answer: selection.Yes})
	secret := v.StoreToken(v.account, v.token, ocmtest.CA())
	v.MustDelete(secret)
	said("while the token is missing")
	v.StoreToken(v.account, v.token, ocmtest.CA())
	v.time.Set(time.Minute)
	v.converge(v.there)
}

// A copy that the API server calls invalid or too large is reported at once, and retried like one
// that cannot be written for another reason.
func TestARefusedCopyIsReportedAndRetried(t *testing.T) {
	for reason, status := range map[string]int{"Invalid": 422, "RequestEntityTooLarge": 413} {
		t.Run(reason, func(t *testing.T) {
			s := newStepper(t)
			v := s.still(s.Name("refused"))
			v.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.Resource == "secrets" && call.IsWrite() {
					return apitest.Fault{Status: status, Reason: reason, Message: "no such copy"}
				}
				return apitest.Fault{}
			})
			if err := v.round(); err == nil {
				t.Error("reconcile returned no error, so the queue does not try again")
			}
			v.mentions(v.cluster, "CopyFailed", "could not be copied or withdrawn in "+v.team, "no such copy")
			v.wire.Fail(nil) // a change of an admission policy sends no event
			v.time.Set(time.Minute)
			v.converge(v.there)
		})
	}
}

// A transient error is not a refusal.
func TestAServerThatFailsIsNotReported(t *testing.T) {
	for reason, status := range map[string]int{"InternalError": 500, "Unauthorized": 401, "NotFound": 404, "": 502} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newStepper(t)
			v := s.still(s.Name("failing"))
			v.converge(v.there)
			v.watched()
			v.token = v.Rotate(v.account)
			v.caughtUp()
			v.wire.Reset()
			v.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.Resource == "secrets" && call.IsWrite() {
					return apitest.Fault{Status: status, Reason: reason, Message: "not now"}
				}
				return apitest.Fault{}
			})
			for second := range 3 {
				v.time.Set(time.Duration(second) * time.Second)
				if err := v.round(); err == nil {
					t.Error("the failure is not retried")
				}
			}
			if got := v.wire.Sent("managedclusteraddons/status"); len(got) > 0 {
				t.Errorf("conditions were written: %v: %+v", got, v.condition(v.cluster))
			}
			// One that lasts is reported.
			v.time.Set(time.Minute)
			if err := v.round(); err == nil {
				t.Error("the failure is not retried")
			}
			v.mentions(v.cluster, "CopyFailed", v.team)
			v.caughtUp()
			v.wire.Fail(nil)
			v.converge(v.there)
		})
	}
}

// TestAnUncertaintyThatIsOverIsNotReported has a write hang, just after a selection became known.
func TestAnUncertaintyThatIsOverIsNotReported(t *testing.T) {
	account := types.NamespacedName{Namespace: "c", Name: "reader"}
	uncertain := []report.Problem{{Reason: contract.ReasonSelectionUnknown, Namespace: "team", Text: "not known"}}
	for name, test := range map[string]struct {
		plan  plan
		known int // accounts
	}{
		"it is over": {plan{}, 0},
		"it goes on": {plan{problems: uncertain}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Credentials: &Credentials{
				outcomes: report.NewOutcomes(func(string) {}, func(string) {}, metrics.New(metrics.Options{})),
			}}
			r.outcomes.Set(account, report.Outcome{Problems: uncertain})
			test.plan.observed = observed{key: account, known: true}
			r.report(test.plan, phaseResult{undecided: true})
			if got := r.outcomes.Of("c"); len(got) != test.known {
				t.Errorf("reported: %v", got)
			}
		})
	}
}
