package credentials

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestTerminatingNamespace(t *testing.T) {
	w := newWorld(t)
	c, team, other := w.cluster(w.Name("c")), w.team(), w.team()
	w.publish(team, c)
	w.publish(other, c)
	w.MustDelete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	w.start()
	account := w.account(c, "reader", team, other)
	w.holds(other, c, "reader", w.Rotate(account))
	w.mentions(c, "CopyFailed", "Account reader could not be copied or withdrawn in "+team, "being terminated")
}

// No controller counts quotas here, so the response is invented.
func TestAQuotaIsReported(t *testing.T) {
	w := newWorld(t)
	c, team, other := w.cluster(w.Name("c")), w.team(), w.team()
	w.publish(team, c)
	w.publish(other, c)
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "secrets" && strings.Contains(call.Path, team) {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden",
				Message: "exceeded quota: few, requested: count/secrets=1, used: 5, limited: 5"}
		}
		return apitest.Fault{}
	})
	w.start()
	account := w.account(c, "reader", team, other)
	token := w.Rotate(account)
	w.holds(other, c, "reader", token)
	w.says(c, "False", "CopyFailed", "Account reader could not be copied or withdrawn in "+team+": creating Secret "+c+"-reader: exceeded quota: few, requested: count/secrets=1, used: 5, limited: 5.")
	w.wire.Fail(nil)
	w.holds(team, c, "reader", token)
	w.synced(c)
}

// TestEveryWriteMayFail makes each write fail once, in every possible way, and lets the
// manager converge.
func TestEveryWriteMayFail(t *testing.T) {
	faults := map[string]apitest.Fault{
		"a conflict":     {Status: 409, Reason: "Conflict", Message: "conflict"},
		"a lost answer":  {Err: fmt.Errorf("connection reset"), AfterServer: true},
		"a lost request": {Err: fmt.Errorf("connection reset")},
		"forbidden":      {Status: 403, Reason: "Forbidden", Message: "forbidden"},
		"unavailable":    {Status: 503, Reason: "ServiceUnavailable", Message: "unavailable"},
	}
	for name, fault := range faults {
		for n := 1; n <= 6; n++ {
			t.Run(fmt.Sprintf("%s, write %d", name, n), func(t *testing.T) {
				w := newWorld(t)
				c, team := w.cluster(w.Name("c")), w.team()
				w.publish(team, c)
				w.wire.FailNthWrite(n, fault)
				w.start()
				account := w.account(c, "reader", team)
				w.synced(c)
				w.holds(team, c, "reader", w.Rotate(account))
				apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
				w.hasNoCopy(team, c, "reader")
				w.bound(team, targetRole, false)
				w.bound(c, sourceRole, false)
			})
		}
	}
}
