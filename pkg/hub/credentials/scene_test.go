package credentials

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
)

// scene is one cluster, published to one team, with one account that is copied
// there.
type scene struct {
	*world
	cluster, team string
	profile       *inventoryv1alpha1.ClusterProfile
	account       *authv1beta1.ManagedServiceAccount
	token         string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{world: newWorld(t)}
	s.cluster = s.world.cluster(s.Name("c"))
	s.team = s.world.team()
	s.profile = s.publish(s.team, s.cluster)
	s.start()
	s.account = s.Account(s.cluster, "reader", s.team)
	s.token = s.Rotate(s.account)
	s.copied()
	return s
}

// copied waits until the copy holds the token.
func (s *scene) copied() *corev1.Secret {
	s.T.Helper()
	return s.holds(s.team, s.cluster, "reader", s.token)
}

// copiedAlso makes the account's token be copied to another namespace, too.
func (s *scene) copiedAlso(other string) {
	s.T.Helper()
	s.publish(other, s.cluster)
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Annotations[targetAnnotation] = s.team + "," + other
	})
	s.holds(other, s.cluster, "reader", s.token)
}

// settled waits until the copy holds the token and nothing is wrong.
func (s *scene) settled() {
	s.T.Helper()
	s.copied()
	s.synced(s.cluster)
}

// withdrawn waits until the copy, and the rights to it and to its source, are gone.
func (s *scene) withdrawn() {
	s.T.Helper()
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.bound(s.team, targetRole, false)
	s.bound(s.cluster, sourceRole, false)
}

// refusesTheManager waits until the API server knows that the manager has no right to the copies
// any more: it decides from a cache, and allows what a deleted RoleBinding granted for a moment.
func (s *scene) refusesTheManager() {
	s.T.Helper()
	s.EventuallyAllowed(s.srv.User(s.T, managerUser), false, authorizationv1.ResourceAttributes{
		Namespace: s.team, Verb: "delete", Resource: "secrets", Name: s.cluster + "-reader",
	})
}

// lookedTwice waits until the token was read again after its second was over, and is not to be read soon.
func (s *scene) lookedTwice() {
	s.T.Helper()
	s.Eventually("the token is read again after its second", func() string {
		found, ok := s.creds.tokens.Current(client.ObjectKeyFromObject(s.account), source.ReferenceOf(s.account), time.Now())
		if next := time.Until(found.Next); !ok || next < time.Minute {
			return fmt.Sprintf("it is to be read in %s; its reference is known: %t", next, ok)
		}
		return ""
	})
}

// source is the path of the account's Secret.
func (s *scene) source() string { return "/api/v1/namespaces/" + s.cluster + "/secrets/reader" }

// followed waits until the manager sees every change of copies in namespaces.
func (w *world) followed(namespaces ...string) {
	w.T.Helper()
	w.Eventually("copies are followed", func() string {
		for _, namespace := range namespaces {
			if !w.creds.followers.Synced(namespace) {
				return namespace + " is not followed"
			}
		}
		return ""
	})
}

// seenVersion is the resource version at which a follower shows a copy; "" means that it shows none.
func (w *world) seenVersion(key types.NamespacedName) string {
	for _, meta := range w.creds.ledger.SeenIn(key.Namespace) {
		if meta.Name == key.Name {
			return meta.ResourceVersion
		}
	}
	return ""
}

// reads are the paths of the Secrets that were read, except for lists and watches.
func (s *scene) reads() []string { return readsOf(s.wire.Calls()) }

func readsOf(calls []apitest.Call) []string {
	var paths []string
	for _, call := range calls {
		if call.Resource == "secrets" && call.Method == http.MethodGet && !call.Query.Has("watch") &&
			!strings.Contains(call.Query.Encode(), "labelSelector") {
			paths = append(paths, call.Path)
		}
	}
	return paths
}

// settle waits until nothing has been written for a while.
func (w *world) settle() {
	w.T.Helper()
	w.wire.Settle(w.T, patience, quietly/2)
}
