package faults

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// placementName is that of every publishing Placement.
const placementName = "view"

// waveLabel is the label of clusters by which the Placement of the story chooses.
const waveLabel = "wave"

// fleetNames are clusters of three slices of decisions, and some that join.
var fleetNames = func() []string {
	const many = 254
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("n%03d", i)
	}
	return names
}()

// spread is the story of a Placement of 250 clusters with joins and leaves at both ends: neighbors
// move from slice to slice, which are of a hundred clusters each in the order of names. Open Cluster
// Management's placement controller decides.
func spread() story {
	before := fleetNames[1:251]
	after := slices.Concat(fleetNames[:1], fleetNames[3:250], []string{"n251", "n253"})
	return story{
		name: "spread", components: []component{placementController}, large: true,
		before: pairs(teamA, before...), after: pairs(teamA, after...), meanwhile: pairs(teamA, "n252"),
		// Both move between slices.
		targets: map[string][]string{"n100": {teamA}, "n201": {teamA}},
		setup: func(w *world) {
			w.set(prod)
			others := map[string]string{"n000": "0", "n002": "1", "n252": "3", "n253": "4"}
			waves := map[string]string{}
			for _, name := range fleetNames {
				waves[name] = cmp.Or(others[name], "2")
			}
			delete(waves, "n251") // it registers later
			w.fleet(waves)
			for _, name := range []string{"n100", "n201"} {
				w.account(name, teamA, stranger)
			}
			w.MustCreate(&clusterv1beta1.Placement{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: teamA, Name: placementName,
					Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
				},
				Spec: clusterv1beta1.PlacementSpec{Predicates: ofWaves("1", "2")},
			})
			w.Bind(teamA, prod) // before the Placement is there, it would publish all clusters
		},
		act: func(w *world) {
			// At the beginning: all slices change.
			w.wave("n000", "2")
			w.shows(teamA, "n000", "1")
			w.wave("n001", "0")
			w.gone(teamA, "n001")
			// At the end: only the last one does.
			w.fleet(map[string]string{"n251": "2"})
			w.shows(teamA, "n251", "1")
			w.MustDelete(ocmtest.Addon("n250"), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "n250"}})
			w.gone(teamA, "n250")
			// At both ends at once, so that their number stays the same: no change of the Placement's
			// status makes the placement controller look again.
			w.choosesWaves("2", "3")
			w.gone(teamA, "n002")
			w.shows(teamA, "n252", "1")
			// Only in the last slice, and their number stays the same.
			w.choosesWaves("2", "4")
			w.gone(teamA, "n252")
			w.shows(teamA, "n253", "1")
		},
		undo: func(w *world) {
			w.MustDelete(ocmtest.Addon("n251"), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "n251"}})
			delete(w.wrote, "n251")
			delete(w.wrote, "n250")
			w.fleet(map[string]string{"n250": "2"})
			w.wave("n000", "0")
			w.wave("n001", "2")
			w.choosesWaves("1", "2")
		},
	}
}

// fleet registers clusters of the set, with the addon. waves are their waves by name.
func (w *world) fleet(waves map[string]string) {
	w.T.Helper()
	failed := inParallel(slices.Sorted(maps.Keys(waves)), func(name string) error {
		labels := ocmtest.InSet(prod)
		labels[waveLabel] = waves[name]
		cluster := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
		}
		addon := ocmtest.Addon(name)
		return errors.Join(
			w.createWithStatus(cluster, func() { cluster.Status = joined(name, "1") }),
			w.createWithStatus(addon, func() { addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized }),
		)
	})
	apitest.Must(w.T, failed)
	for name := range waves {
		w.wrote[name] = append(w.wrote[name], "1")
	}
}

// createWithStatus creates an object and then its status, which change sets.
func (w *world) createWithStatus(object client.Object, change func()) error {
	ctx := w.T.Context()
	if err := w.Create(ctx, object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	change()
	return w.Status().Patch(ctx, object, client.MergeFrom(before))
}

// inParallel calls a function for each value, for some of them at the same time.
func inParallel[T any](values []T, do func(T) error) error {
	const atOnce = 8
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, value := range values {
		group.Go(func() error { return do(value) })
	}
	return group.Wait()
}

// wave puts a cluster into a wave.
func (w *world) wave(name, wave string) {
	w.T.Helper()
	w.MustMerge(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, waveLabel, wave))
}

// choosesWaves changes which waves the Placement chooses.
func (w *world) choosesWaves(waves ...string) {
	w.T.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: teamA, Name: placementName}}
	apitest.Edit(w, placement, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = ofWaves(waves...) })
}

func ofWaves(waves ...string) []clusterv1beta1.ClusterPredicate {
	return []clusterv1beta1.ClusterPredicate{{
		RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: waveLabel, Operator: metav1.LabelSelectorOpIn, Values: waves},
			}},
		},
	}}
}

// joinSlices replaces, in a state, what each slice of references has by what all slices of a namespace
// have together: which slice has a reference depends on the order of writes.
func joinSlices(state map[string]string) {
	all := map[string][]string{}
	for id, content := range state {
		resource, key, _ := strings.Cut(id, " ")
		var slice map[string]any
		if resource != references || json.Unmarshal([]byte(content), &slice) != nil {
			continue
		}
		of := references + " in " + namespaceOf(key)
		decisions, _ := slice["decisions"].([]any)
		for _, decision := range decisions {
			all[of] = append(all[of], fmt.Sprint(decision))
		}
		delete(slice, "decisions")
		state[id] = fmt.Sprint(slice)
	}
	for of, decisions := range all {
		state[of] = strings.Join(sorted(decisions), "\n")
	}
}

// isOfCluster reports whether a namespace is that of a cluster.
func isOfCluster(namespace string) bool {
	return slices.Contains(clusterNames, namespace) || slices.Contains(fleetNames, namespace) ||
		slices.Contains(manyNames, namespace)
}
