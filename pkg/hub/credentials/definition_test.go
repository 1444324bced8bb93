package credentials

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// relisted waits until the accounts' cache has caught up with a recreated CRD, and the
// account is missing from it or not.
func (w *world) relisted(account client.Object, missing bool) {
	w.T.Helper()
	w.Eventually("the accounts are listed under the new CRD", func() string {
		state, err := w.opts.Definitions.State(w.T.Context(), w.mgr.GetCache(), source.AccountCRD)
		if err != nil || state != watch.Restoring {
			return "the cache has not caught up"
		}
		found, _, err := w.creds.accounts.Get(w.T.Context(), client.ObjectKeyFromObject(account))
		if err != nil || (found == nil) != missing {
			return "the account is there, or not"
		}
		return ""
	})
}

// TestAccountsThatAreRestoredSlowly: as long as anything is being restored, even of another
// kind, the copy of a missing account stays.
func TestAccountsThatAreRestoredSlowly(t *testing.T) {
	w := newWorldOn(t, restoredHub)
	ahead := watch.RestoreTime
	now := apitest.Ahead(ahead)
	w.opts.Clock = now
	c, team := w.cluster(w.Name("c")), w.team()
	w.publish(team, c)
	w.start()
	account := w.Account(c, "reader", team)
	copied := w.holds(team, c, "reader", w.Rotate(account))
	w.wire.Reset()
	restore := w.Backup(&authv1beta1.ManagedServiceAccountList{})
	restoredHub.Reinstall(w.World, source.AccountCRD, apitest.ManagedServiceAccount())
	w.relisted(account, true)
	for i := range 5 {
		ahead += watch.RestoreTime / 2
		now.Set(ahead)
		next := w.cluster(w.Name(fmt.Sprintf("next-%d-", i)))
		w.publish(team, next)
		began := now.Now()
		other := w.account(next, "reader", team)
		w.Eventually("the manager sees another account", func() string {
			if w.opts.Definitions.LastAdded().Before(began) {
				return "nothing was added"
			}
			return ""
		})
		w.creds.enqueueAccount(client.ObjectKeyFromObject(account))
		w.holds(team, next, "reader", w.Rotate(other))
	}
	restore()
	w.relisted(account, false)
	w.MustGet(account)
	if again := w.holds(team, c, "reader", w.Rotate(account)); again.UID != copied.UID {
		t.Errorf("the copy was recreated")
	}
	if got := w.deleted(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}
}

// TestAManagerThatStartsDuringARestore finds copies and rights, and an account missing.
func TestAManagerThatStartsDuringARestore(t *testing.T) {
	w := newWorldOn(t, restoredHub)
	c, team := w.cluster(w.Name("c")), w.team()
	w.publish(team, c)
	w.start()
	account := w.Account(c, "reader", team)
	copied := w.holds(team, c, "reader", w.Rotate(account))
	other := w.cluster(w.Name("other"))
	w.publish(team, other)
	w.account(other, "reader", team)
	w.copied(team, other, "reader")
	w.stop()
	restore := w.Backup(&authv1beta1.ManagedServiceAccountList{})
	restoredHub.Reinstall(w.World, source.AccountCRD, apitest.ManagedServiceAccount())
	next := ocmtest.NewAccount(w.cluster(w.Name("next")), "reader", team) // so that all that are there are reconciled
	w.Eventually("the recreated kind is served", apitest.Succeeds(func() error {
		return client.IgnoreAlreadyExists(w.Create(t.Context(), next.DeepCopy()))
	}))
	w.MustGet(next)
	w.Rotate(next)

	w.wire.Reset()
	w.start()
	w.relisted(account, true)
	w.followed(team)
	w.Eventually("the accounts that are there are reconciled", func() string {
		if !w.creds.accounts.AllReconciled() {
			return "not yet"
		}
		return ""
	})
	w.creds.enqueueEverything()
	w.creds.enqueueGrants()
	w.settle()
	restore()
	w.relisted(account, false)
	w.MustGet(account)
	if again := w.holds(team, c, "reader", w.Rotate(account)); again.UID != copied.UID {
		t.Errorf("the copy was recreated")
	}
	if got := w.deleted(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}
}

// deleted returns the requests that deleted something.
func (w *world) deleted() []string {
	var list []string
	for _, call := range w.wire.Writes() {
		if call.Method == http.MethodDelete {
			list = append(list, call.String())
		}
	}
	return list
}

func TestAccountsThatVanishWithTheirCRD(t *testing.T) {
	w := newWorldOn(t, restoredHub)
	now := apitest.Ahead(watch.RestoreTime)
	w.opts.Clock = now
	c, team := w.cluster(w.Name("c")), w.team()
	w.publish(team, c)
	w.start()
	account := w.Account(c, "reader", team)
	copied := w.holds(team, c, "reader", w.Rotate(account))

	w.wire.Reset()
	restore := w.Backup(&authv1beta1.ManagedServiceAccountList{})
	restoredHub.Reinstall(w.World, source.AccountCRD, apitest.ManagedServiceAccount())
	w.relisted(account, true)
	w.creds.enqueueEverything()
	// The restored account is another object than the one for which the Secret of its token
	// was created, until its agent creates a new one.
	restore()
	w.relisted(account, false)
	w.creds.enqueueEverything()
	w.MustGet(account)
	if again := w.holds(team, c, "reader", w.Rotate(account)); again.UID != copied.UID {
		t.Errorf("the copy was recreated")
	}
	if got := w.deleted(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}

	// A minute later, missing objects count.
	now.Set(2 * watch.RestoreTime)
	restoredHub.Reinstall(w.World, source.AccountCRD, apitest.ManagedServiceAccount())
	w.relisted(account, true)
	if w.copied(team, c, "reader") == nil {
		t.Error("the copy was deleted for want of the account")
	}
	now.Set(3 * watch.RestoreTime)
	w.creds.enqueuePair(types.NamespacedName{Namespace: team, Name: c})
	w.hasNoCopy(team, c, "reader")
}
