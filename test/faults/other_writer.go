package faults

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// theirs is a property that another client writes to profiles.
const theirs = "last-seen.example.com"

// ofTheirs is where the values of that property are kept of those that were written.
func ofTheirs(cluster string) string { return cluster + " " + theirs }

// write writes a value of that property to the profile of a cluster.
type write func(w *world, namespace, cluster, value string) error

// applies does so with a forced server-side apply.
func (w *world) applies(namespace, cluster, value string) error {
	body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"ClusterProfile","metadata":{"namespace":%q,"name":%q},
		"status":{"properties":[{"name":%q,"value":%q}]}}`,
		inventoryv1alpha1.GroupVersion, namespace, cluster, theirs, value)
	return w.Status().Patch(w.T.Context(), emptyProfile(namespace, cluster), client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner("theirs"), client.ForceOwnership)
}

// updates does so by reading and updating the profile, again after a conflict.
func (w *world) updates(namespace, cluster, value string) error {
	return retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		profile := emptyProfile(namespace, cluster)
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
			return err
		}
		list := &profile.Status.Properties
		at := slices.IndexFunc(*list, func(p inventoryv1alpha1.Property) bool { return p.Name == theirs })
		if at < 0 {
			at = len(*list)
			*list = append(*list, inventoryv1alpha1.Property{Name: theirs})
		}
		(*list)[at].Value = value
		return w.Status().Update(w.T.Context(), profile, client.FieldOwner("theirs"))
	})
}

func emptyProfile(namespace, name string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// writes writes a value, and notes it first: a watcher may see it before the writer. After a
// step that had no effect in time, there may be no profile, and nothing is written.
func (w *world) writes(by write, namespace, cluster, value string) {
	w.T.Helper()
	if len(w.missed) > 0 {
		return
	}
	w.wrote[ofTheirs(cluster)] = append(w.wrote[ofTheirs(cluster)], value)
	apitest.Must(w.T, by(w, namespace, cluster, value))
}

// shared makes a hub whose first cluster's profile has a property of another client's.
func (w *world) shared(by write) {
	w.T.Helper()
	w.set(prod)
	w.Bind(teamA, prod)
	w.cluster("c1", prod, "1")
	w.cluster("c2", prod, "1")
	w.shows(teamA, "c1", "1")
	w.writes(by, teamA, "c1", "1")
}

// editBeside edits a property of the cluster while the other client writes its own.
func (w *world) editBeside(by write) {
	w.T.Helper()
	next := 1
	for _, size := range []string{"2", "3", "4"} {
		w.edit("c1", size)
		for range 3 {
			next++
			w.writes(by, teamA, "c1", fmt.Sprint(next))
		}
		w.shows(teamA, "c1", size)
	}
}
