package credentials

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestARotationIsOnePatchPerTarget(t *testing.T) {
	s := newScene(t)
	second := s.world.team()
	s.publish(second, s.cluster)
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Annotations[targetAnnotation] = s.team + ", " + second + ","
	})
	s.holds(second, s.cluster, "reader", s.token)
	s.synced(s.cluster)
	s.lookedTwice()
	s.followed(s.team, second)
	for range 3 {
		s.wire.Reset()
		s.token = s.Rotate(s.account)
		s.copied()
		s.holds(second, s.cluster, "reader", s.token)
		// The token is read when the account's status changes, and again when that second is over;
		// its copies never.
		twice := []string{s.source(), s.source()}
		s.Eventually("the token is read twice", func() string { return cmp.Diff(twice, s.reads()) })
		s.settle()
		if diff := cmp.Diff(twice, s.reads()); diff != "" {
			t.Errorf("Secrets read (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"PATCH secrets", "PATCH secrets"}, s.wire.Sent()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
}

// The agent recreates a Secret that was deleted. A reconciliation in between withdraws
// nothing.
func TestReissuedTokenIsCopiedInPlace(t *testing.T) {
	s := newScene(t)
	before := s.copied()
	s.lookedTwice()
	s.wire.Reset()
	s.MustDelete(ocmtest.TokenSecret(s.account, "", ""))
	// The second read happens when it is back.
	back, looks := make(chan struct{}), 0
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Path != s.source() {
			return apitest.Fault{}
		}
		if looks++; looks == 1 {
			return apitest.Fault{}
		}
		return apitest.Fault{Until: back}
	})
	// An altered copy makes the manager read its source.
	apitest.Edit(s.world, before.DeepCopy(), func(c *corev1.Secret) { c.Data["token"] = []byte("altered") })
	s.Eventually("the source is looked for", func() string {
		if len(s.reads()) == 0 {
			return "the source was not looked for"
		}
		return ""
	})
	s.token = s.Rotate(s.account)
	close(back)
	if after := s.copied(); after.UID != before.UID {
		t.Error("the copy was withdrawn and recreated")
	}
}

// The agent issues two tokens within a second if its cache lags; its status is then the
// same for both.
func TestASecondTokenOfTheSameSecondFollows(t *testing.T) {
	s := newScene(t)
	s.lookedTwice()
	second, looks := ocmtest.Token(time.Now().Add(time.Hour)), 0
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Path == s.source() {
			if looks++; looks == 2 {
				s.StoreToken(s.account, second, ocmtest.CA())
			}
		}
		return apitest.Fault{}
	})
	s.Rotate(s.account)
	s.token = second
	s.copied()
}

// The agent writes the Secret first. Until it has written the status, that says when the previous token
// ends; in a cache that lags, it does so for longer.
func TestATokenThatItsStatusDoesNotAnnounceYetIsCopiedOnce(t *testing.T) {
	s := newScene(t)
	before := s.copied()
	s.lookedTwice()
	ends := time.Now().Add(2 * time.Hour)
	s.token = ocmtest.TokenOf(s.cluster, "reader", ends)
	s.StoreToken(s.account, s.token, ocmtest.CA())
	s.wire.Reset()
	// An altered copy makes the manager read its source.
	apitest.Edit(s.world, before.DeepCopy(), func(c *corev1.Secret) { c.Data["token"] = []byte("altered") })
	says := ends.UTC().Format(time.RFC3339)
	if got := s.copied().Annotations["inventory.open-cluster-management.io/expires"]; got != says {
		t.Errorf("the copy says that its token expires at %s, want %s", got, says)
	}
	s.ReportToken(s.account, "reader", ends)
	s.Eventually("the status is noticed", func() string {
		if len(s.reads()) < 2 {
			return "the source was read once"
		}
		return ""
	})
	s.settle()
	if diff := cmp.Diff([]string{"PATCH secrets"}, s.wire.Sent()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestIrrelevantChangesWriteNothing(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.settle()
	s.lookedTwice()
	s.followed(s.team)
	s.wire.Reset()
	for i := range 20 {
		apitest.EditStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
			a.Status.Conditions = []metav1.Condition{{Type: "TokenReported", Status: "False", Reason: "TokenReportFailed",
				Message: fmt.Sprint(i), LastTransitionTime: metav1.Now()}}
		})
		apitest.Edit(s.world, s.profile,
			func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations = map[string]string{"touched": fmt.Sprint(i)} })
		s.creds.enqueuePair(types.NamespacedName{Namespace: s.team, Name: s.cluster})
		s.creds.enqueueEverything()
		s.creds.enqueueGrants()
	}
	s.wire.Quiet(s.T, quietly, "though no token changed")
	for _, call := range s.wire.Calls() {
		if call.Resource == "secrets" && !call.Query.Has("watch") {
			t.Errorf("%s %s", call.Method, call.Path)
		}
	}
}

func TestARestartWithNothingChangedWritesNothing(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.settle()
	s.wire.Reset()
	s.start()
	s.followed(s.team)
	s.Eventually("everything is reconciled", func() string {
		if !s.creds.allReconciled() {
			return "the manager has not looked at everything"
		}
		return ""
	})
	s.wire.Quiet(s.T, quietly, "after a restart")
	s.wire.Reset()
	s.token = s.Rotate(s.account)
	s.copied()
}

func TestCheckFindsUnannouncedChanges(t *testing.T) {
	scene := func(t *testing.T) *scene {
		s := newScene(t)
		s.opts.checkEvery = 300 * time.Millisecond
		s.start()
		return s
	}
	t.Run("a token rotated twice in a second", func(t *testing.T) {
		s := scene(t)
		s.token = ocmtest.Token(time.Now().Add(time.Hour))
		s.StoreToken(s.account, s.token, ocmtest.CA())
		s.copied()
	})
	t.Run("a Secret that was deleted", func(t *testing.T) {
		s := scene(t)
		s.MustDelete(ocmtest.TokenSecret(s.account, "", ""))
		s.hasNoCopy(s.team, s.cluster, "reader")
		s.says(s.cluster, "False", "InvalidSource", "Account reader is not copied: its Secret reader is not there.")
		// Another reconciliation writes nothing.
		s.bound(s.team, targetRole, false)
		s.settle()
		s.wire.Reset()
		s.wire.Quiet(s.T, quietly, "after another look")
		s.StoreToken(s.account, s.token, ocmtest.CA())
		s.copied()
	})
	t.Run("a Secret that is another's now", func(t *testing.T) {
		s := scene(t)
		other := s.account.DeepCopy()
		other.UID = "another"
		s.StoreToken(other, s.token, ocmtest.CA())
		s.hasNoCopy(s.team, s.cluster, "reader")
		s.mentions(s.cluster, "InvalidSource", "no owner reference has its UID")
	})
	t.Run("nothing", func(t *testing.T) {
		s := scene(t)
		s.settled()
		s.settle()
		s.wire.Reset()
		s.Eventually("the token is read twice", func() string {
			if got := len(s.reads()); got < 2 {
				return fmt.Sprintf("read %d times", got)
			}
			return ""
		})
		s.wire.Quiet(s.T, quietly, "after another look")
	})
}

func TestExpiredTokenIsWithdrawn(t *testing.T) {
	const validity = 10 * time.Minute
	s, now := newScene(t), &apitest.Clock{}
	s.opts.Clock = now
	s.start()
	expires := now.Now().Add(validity)
	s.token = ocmtest.Token(expires)
	s.StoreToken(s.account, s.token, ocmtest.CA())
	s.ReportToken(s.account, "reader", expires.Add(time.Hour))
	s.copied()
	now.Set(validity - time.Second)
	s.creds.enqueuePair(types.NamespacedName{Namespace: s.team, Name: s.cluster})
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.mentions(s.cluster, "InvalidSource", "has expired")
	s.token = s.Rotate(s.account)
	s.copied()
}

// Root on a spoke can change its account's token all the time. That must not be multiplied by the number of
// target namespaces, and the last token must arrive. Ten writes in a row do not wait.
func TestATokenThatChangesAllTheTimeIsHeldBack(t *testing.T) {
	const every = 5 * time.Minute // a long time, compared with that of the test
	s := newStepper(t, func(o *Options) { o.WriteEvery = every })
	v := s.still(s.Name("flapping"))
	v.converge(v.there)
	v.watched()
	for i := range 30 {
		v.token = v.Rotate(v.account)
		v.caughtUp()
		result, err := v.step()
		isHeld := i >= 9 // the first copy counts
		if err != nil || isHeld != (v.there() != "") {
			t.Errorf("rotation %d: reconcile = %+v, %v; copy: %s", i, result, err, v.there())
		}
		if isHeld && (result.RequeueAfter <= 0 || result.RequeueAfter > every) {
			t.Errorf("rotation %d is looked at again after %s", i, result.RequeueAfter)
		}
		v.caughtUp()
	}
	if got := len(v.wire.Writes("secrets")); got != 10 {
		t.Errorf("a first copy and 30 rotations were written %d times, want 10", got)
	}
	if got := v.condition(v.cluster); got.Reason != "Copied" {
		t.Errorf("a copy that waits is reported: %+v", got)
	}

	v.wire.Reset()
	expires := time.Now().Add(time.Hour)
	for range 3 { // a withdrawal does not wait, but a new copy does
		apitest.EditStatus(v.world, v.account, func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil })
		v.caughtUp()
		if _, err := v.step(); err != nil || v.copied(v.team, v.cluster, "reader") != nil {
			t.Errorf("the copy was not withdrawn: %v", err)
		}
		v.ReportToken(v.account, "reader", expires)
		v.caughtUp()
		if result, err := v.step(); err != nil || result.RequeueAfter <= 0 {
			t.Errorf("reconcile = %+v, %v; want the copy to wait", result, err)
		}
	}
	if diff := cmp.Diff([]string{"DELETE secrets"}, v.wire.Sent("secrets")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	v.time.Set(every)
	v.converge(v.there)
}
