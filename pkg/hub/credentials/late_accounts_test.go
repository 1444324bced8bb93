package credentials

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// TestAccountsThatALaggingCacheLacks: the cache of a manager that has just started is older than
// the API server, and has no account, or one without a token, or one whose token has expired, or one that
// names another namespace. Whether the copy stays depends on what there is.
func TestAccountsThatALaggingCacheLacks(t *testing.T) {
	for name, is := range map[string]struct{ cached, expired, elsewhere, deleted bool }{
		"it exists":              {},
		"it has a token":         {cached: true},
		"it has a new token":     {cached: true, expired: true},
		"it names the namespace": {cached: true, elsewhere: true},
		"it does not exist":      {deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.Name("c")), w.team()
			left := leftover(c, team, w.publish(team, c))
			w.MustCreate(left, leftBinding(team, targetRole))
			ahead, caughtUp := make(chan struct{}), make(chan struct{})
			w.wire.Fail(func(call apitest.Call) apitest.Fault {
				if asksHowFar(call) {
					return apitest.Fault{Until: ahead}
				}
				return lateEvents(call, caughtUp)
			})
			var account *authv1beta1.ManagedServiceAccount
			name := func(namespace string) {
				apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) {
					a.Annotations[targetAnnotation] = namespace
				})
			}
			if is.cached {
				account = w.Account(c, "reader", team)
			}
			if is.expired {
				w.ReportToken(account, "reader", time.Now().Add(-time.Hour))
			}
			if is.elsewhere {
				w.Rotate(account)
				name(w.team())
			}
			w.start()
			count := func(what string, least int, matches func(apitest.Call) bool) {
				t.Helper()
				w.Eventually(what, func() string {
					n := 0
					for _, call := range w.wire.Calls() {
						if matches(call) {
							n++
						}
					}
					if n < least {
						return fmt.Sprintf("%d times", n)
					}
					return ""
				})
			}
			count("the accounts are listed, and the manager asks how far the API server is", 1, asksHowFar)
			if !is.cached {
				account = w.Account(c, "reader", team)
			}
			token := w.Rotate(account)
			if is.elsewhere {
				name(team)
			}
			if is.deleted {
				w.MustDelete(account)
			}
			close(ahead)

			if is.deleted {
				w.hasNoCopy(team, c, "reader")
				return
			}
			count("the account is read live, again and again", 3, readsAccount)
			if w.copied(team, c, "reader") == nil {
				t.Error("the copy was withdrawn although its account exists")
			}
			// The cache catches up while the manager, which has read it, reads the CRD or the account live.
			going, reads := make(chan struct{}), make(chan struct{}, 1)
			w.wire.Fail(func(call apitest.Call) apitest.Fault {
				if !readsAccount(call) && (call.Resource != "customresourcedefinitions" || call.IsWatch()) {
					return apitest.Fault{}
				}
				select {
				case reads <- struct{}{}:
				default:
				}
				return apitest.Fault{Until: going}
			})
			<-reads
			close(caughtUp)
			w.Eventually("the cache has the account's token", func() string {
				cached, _, err := w.creds.accounts.Get(t.Context(), client.ObjectKeyFromObject(account))
				names := func() bool { return slices.Contains(source.NamedNamespaces(cached).Namespaces, team) }
				if err != nil || isUnusable(cached, time.Now()) || !names() {
					return fmt.Sprintf("%v, %v", cached, err)
				}
				return ""
			})
			close(going)
			if now := w.holds(team, c, "reader", token); now.UID != left.UID {
				t.Error("the copy was recreated")
			}
		})
	}
}

// asksHowFar reports whether a call asks how far the API server is.
func asksHowFar(call apitest.Call) bool {
	return call.Resource == "customresourcedefinitions" && call.Query.Get("limit") == "1"
}

// readsAccount reports whether a call reads an account live.
func readsAccount(call apitest.Call) bool {
	return call.Resource == "managedserviceaccounts" && call.Query.Has("fieldSelector")
}

// lateEvents lets accounts be listed, and holds back what comes after that.
func lateEvents(call apitest.Call, caughtUp <-chan struct{}) apitest.Fault {
	switch {
	case call.Resource != "managedserviceaccounts" || !call.IsWatch():
		return apitest.Fault{}
	case call.Query.Has("sendInitialEvents"):
		return apitest.Fault{Status: http.StatusUnprocessableEntity, Reason: "Invalid"}
	default:
		return apitest.Fault{Until: caughtUp}
	}
}

// TestNoRightIsGrantedForAnAccountThatIsGone: a cluster is registered again, and the cache still has an account
// of its earlier registration. While the hub does not say whether it is the same account, nothing is granted.
func TestNoRightIsGrantedForAnAccountThatIsGone(t *testing.T) {
	for name, is := range map[string]struct{ replaced, unreadable bool }{
		"it was deleted":  {},
		"it was replaced": {replaced: true},
		"it is the same":  {unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.Name("c")), w.team()
			account := w.Account(c, "reader", team)
			token := w.Rotate(account)
			caughtUp := make(chan struct{})
			w.wire.Fail(func(call apitest.Call) apitest.Fault {
				if readsAccount(call) && is.unreadable {
					return apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError"}
				}
				return lateEvents(call, caughtUp)
			})
			w.start()
			w.Eventually("the cache has the account", func() string {
				cached, _, err := w.creds.accounts.Get(t.Context(), client.ObjectKeyFromObject(account))
				if err != nil || cached == nil {
					return fmt.Sprintf("%v, %v", cached, err)
				}
				return ""
			})
			if !is.unreadable {
				w.MustDelete(account)
			}
			if is.replaced {
				token = w.Rotate(w.Account(c, "reader", team))
			}
			w.publish(team, c)
			w.Eventually("the account is read live", func() string {
				if !slices.ContainsFunc(w.wire.Calls(), readsAccount) {
					return "it is not"
				}
				return ""
			})
			w.wire.Quiet(t, quietly, "for an account that may be gone")
			close(caughtUp)
			w.wire.Fail(nil)
			if is.replaced || is.unreadable {
				w.holds(team, c, "reader", token)
				return
			}
			w.wire.Quiet(t, quietly, "for an account that is gone")
		})
	}
}

// TestNoRightIsGrantedForACopyThatALaggingCacheShows: as above, but the cache of a manager that has just started
// also shows a copy of the account's token.
func TestNoRightIsGrantedForACopyThatALaggingCacheShows(t *testing.T) {
	for name, is := range map[string]struct {
		selected   selection.Result
		unreadable bool
	}{
		"the account was deleted":                     {selected: selection.Result{Answer: selection.Yes}},
		"the account was deleted, the rule waits":     {selected: selection.Result{Why: "awaits a decision"}},
		"the hub does not say if it exists":           {selected: selection.Result{Answer: selection.Yes}, unreadable: true},
		"the hub does not say it, and the rule waits": {selected: selection.Result{Why: "awaits"}, unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.Name("c")), w.team()
			w.MustCreate(leftover(c, team, w.publish(team, c)), leftBinding(team, targetRole))
			w.rule.say(team, c, is.selected)
			account := w.Account(c, "reader", team)
			token := w.Rotate(account)
			ahead, caughtUp := make(chan struct{}), make(chan struct{})
			w.wire.Fail(func(call apitest.Call) apitest.Fault {
				switch {
				case readsAccount(call) && is.unreadable:
					return apitest.Fault{Until: ahead, Status: http.StatusInternalServerError, Reason: "InternalError"}
				case readsAccount(call), asksHowFar(call):
					return apitest.Fault{Until: ahead}
				default:
					return lateEvents(call, caughtUp)
				}
			})
			w.start()
			called := func(what string, matches func(apitest.Call) bool) {
				t.Helper()
				w.Eventually(what, func() string {
					if !slices.ContainsFunc(w.wire.Calls(), matches) {
						return "it is not"
					}
					return ""
				})
			}
			called("the accounts are listed, and the manager asks how far the API server is", asksHowFar)
			if is.unreadable {
				apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels["changed"] = "since" })
			} else {
				w.MustDelete(account)
			}
			close(ahead)
			called("the account is read live", readsAccount)
			w.wire.Quiet(t, quietly, "for an account that may be gone")
			close(caughtUp)
			w.wire.Fail(nil)
			w.rule.say(team, c, selection.Result{Answer: selection.Yes})
			if is.unreadable {
				w.holds(team, c, "reader", token)
				return
			}
			w.hasNoCopy(team, c, "reader")
			w.bound(team, targetRole, false)
			for _, write := range w.wire.Writes("rolebindings") {
				if write.Method == http.MethodPost {
					t.Errorf("a right was granted: %s", write)
				}
			}
		})
	}
}

// TestAnAccountIsReadLiveOnce: retries and later copies read it from the cache.
func TestAnAccountIsReadLiveOnce(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.copiedAlso(s.world.team())
	s.settled()
	reads := 0
	for _, call := range s.wire.Calls() {
		if readsAccount(call) {
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("the account was read live %d times, want once", reads)
	}
}

func TestAccountsThatAreServedLate(t *testing.T) {
	srv := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile())
	w := newWorldOn(t, srv)
	c, team := w.cluster(w.Name("c")), w.team()
	profile := w.publish(team, c)
	// A copy from an earlier manager: it is unknown whether its account exists.
	left := leftover(c, team, profile)
	w.MustCreate(left, leftBinding(team, targetRole))
	w.start()
	w.Eventually("copies in the namespace are followed", func() string {
		if !w.creds.followers.Synced(team) {
			return "the namespace has not been looked into"
		}
		return ""
	})
	w.Stays(quietly, "the copy is kept", func() string {
		if w.copied(team, c, "reader") == nil {
			return "a copy was deleted though nothing is known of its account"
		}
		return ""
	})
	srv.Install(t, apitest.ManagedServiceAccount())
	w.hasNoCopy(team, c, "reader") // now it is known that there is none
	account := w.account(c, "reader", team)
	token := w.Rotate(account)
	w.holds(team, c, "reader", token)
}

func TestARevocationBeforeTheAccountsAreServed(t *testing.T) {
	w := newWorldOn(t, hubWithoutAccounts)
	c, team := w.cluster(w.Name("c")), w.team()
	profile := w.publish(team, c)
	left := leftover(c, team, profile)
	w.MustCreate(left, leftBinding(team, targetRole))
	w.start()
	w.rule.say(team, c, selection.Result{Answer: selection.No, Why: "is out"})
	w.hasNoCopy(team, c, "reader")
}

// TestRightsAreRemovedWhereNoAccountsAreServed: managed-serviceaccount was uninstalled while no
// manager ran. The addon's objects must not wait for its return. The right to a token may stay for as long
// as there is a copy, depending on which of the two the manager sees first.
func TestRightsAreRemovedWhereNoAccountsAreServed(t *testing.T) {
	for name, copyFirst := range map[string]bool{"its copy is seen first": true, "its right is seen first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, hubWithoutAccounts)
			c, team, uncopied := w.cluster(w.Name("c")), w.team(), w.cluster(w.Name("uncopied"))
			left := leftover(c, team, w.publish(team, c))
			right := leftBinding(c, sourceRole)
			w.MustCreate(left, leftBinding(team, targetRole), leftBinding(uncopied, sourceRole))
			if !copyFirst {
				w.MustCreate(right)
			}
			w.start()
			w.bound(uncopied, sourceRole, false)
			w.Eventually("the copy is known", func() string {
				if !w.creds.followers.Synced(team) {
					return "the namespace has not been looked into"
				}
				return ""
			})
			w.Stays(quietly, "the copy is kept", func() string {
				if w.copied(team, c, "reader") == nil {
					return "the copy was taken back"
				}
				return ""
			})
			if copyFirst {
				w.MustCreate(right)
			}
			w.rule.say(team, c, selection.Result{Answer: selection.No, Why: "is out"})
			w.hasNoCopy(team, c, "reader")
			w.bound(team, targetRole, false)
			w.bound(c, sourceRole, false)
		})
	}
}
