package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

const (
	// kept is a property that never changes.
	kept = "kept.example.com"
	// taken is a name for which there is another client's claim at first.
	taken = "taken.example.com"
)

// claimsOf are the pairs of properties' claims.
func claimsOf(names ...string) []string { return pairs("", names...) }

// agentStories are what the owners of a spoke's properties do, and its administrator.
var agentStories = []story{
	{
		name: "properties", before: claimsOf(kept), after: claimsOf(kept), meanwhile: claimsOf(edited),
		setup: func(w *world) { w.sets(kept, "1") },
		act: func(w *world) {
			w.sets(edited, "1")
			w.reports("Published", "2 properties published.")
			for _, size := range []string{"2", "3", "4"} {
				w.sets(edited, size)
			}
			w.MustDelete(property(edited, ""))
			w.unclaims(edited)
			w.reports("Published", "1 property published.")
		},
	},
	{
		// What is wrong with a property is reported on the hub, and so is that it no longer is.
		name: "report", before: claimsOf(kept, edited), after: claimsOf(kept, edited), meanwhile: claimsOf(edited),
		setup: func(w *world) {
			w.sets(kept, "1")
			w.sets(edited, "1")
		},
		act: func(w *world) {
			w.edits(edited, fmt.Sprintf(`{"spec":{"value":%q}}`, strings.Repeat("x", 1025)))
			w.unclaims(edited)
			w.reports("PartiallyPublished", "1 of 2 properties published. Left out: "+edited)
			w.sets(edited, "2")
			w.reports("Published", "2 properties published.")
			w.edits(edited, `{"metadata":{"labels":{"open-cluster-management.io/spoke-only":""}}}`)
			w.unclaims(edited)
			w.reports("Published", "Kept on the spoke by label: "+edited)
			w.edits(edited, `{"metadata":{"labels":null}}`)
			w.claims(edited, "2")
			w.reports("Published", "2 properties published.")
			w.MustCreate(property(reserved, "1"))
			w.reports("PartiallyPublished", "2 of 3 properties published. Left out: "+reserved)
			w.MustDelete(property(reserved, ""))
			w.reports("Published", "2 properties published.")
		},
	},
	{
		// A claim of another client is left alone while it is there.
		name: "foreign", before: claimsOf(kept, taken), after: claimsOf(kept, taken), meanwhile: claimsOf(taken),
		setup: func(w *world) {
			w.sets(kept, "1")
			w.writesClaim(taken, "theirs 1")
		},
		act: func(w *world) {
			w.MustCreate(property(foreign, "1"), property(taken, "1"))
			w.reports("PartiallyPublished", "1 of 3 properties published. Left out: "+foreign)
			w.edits(foreign, `{"spec":{"value":"2"}}`)
			for _, value := range []string{"theirs 2", "theirs 3"} {
				w.edits(taken, fmt.Sprintf(`{"spec":{"value":"not %s"}}`, value))
				w.writesClaim(taken, value)
			}
			w.wrote[taken] = append(w.wrote[taken], "4")
			w.edits(taken, `{"spec":{"value":"4"}}`)
			w.losesClaim(taken)
			w.claims(taken, "4")
			w.reports("PartiallyPublished", "2 of 3 properties published. Left out: "+foreign)
			w.MustDelete(property(foreign, ""))
			w.reports("Published", "2 properties published.")
		},
	},
	{
		// Another client changes and deletes what the agent has made.
		name: "altered", before: claimsOf(kept, edited), after: claimsOf(kept, edited), meanwhile: claimsOf(edited),
		setup: func(w *world) {
			w.sets(kept, "1")
			w.sets(edited, "1")
		},
		act: func(w *world) {
			w.wrote[edited] = append(w.wrote[edited], "theirs", "1")
			w.altersClaim(edited, `{"spec":{"value":"theirs"},"metadata":{"labels":{"team":"a"}}}`, "1")
			w.altersClaim(edited, `{"metadata":{"ownerReferences":null}}`, "1")
			w.sets(edited, "2")
			w.losesClaim(edited)
			w.claims(edited, "2")
		},
	},
	{
		// The file of the hub's kubeconfig cannot be used for a while. The agent looks every ten seconds.
		name: "hub-kubeconfig", before: claimsOf(kept), after: claimsOf(kept, edited),
		// An agent that starts with such a file cannot report anything.
		impossible: []string{
			"kill-before patch managedclusteraddons.addon.open-cluster-management.io/status c1/cluster-inventory 1",
		},
		setup: func(w *world) { w.sets(kept, "1") },
		act: func(w *world) {
			again := w.spoils(w.hubKubeconfig)
			w.reports("HubKubeconfigInvalid", "its kubeconfig cannot be read")
			w.sets(edited, "1")
			again()
			w.reports("Published", "2 properties published.")
			w.sets(edited, "2")
		},
	},
	{
		// The CustomResourceDefinition goes, with all properties, and comes again.
		name: "property-api", before: claimsOf(kept, edited), after: claimsOf(edited), meanwhile: claimsOf(edited),
		without: []proxy.Kind{unserved}, // the administrator is busy with it
		setup: func(w *world) {
			w.sets(kept, "1")
			w.sets(edited, "1")
		},
		act: func(w *world) {
			again := w.removesAPI(properties)
			w.unclaims(kept)
			w.unclaims(edited)
			w.reports("ClusterPropertyAPIMissing", "publishing starts once it is installed")
			again()
			w.sets(edited, "2")
			w.reports("Published", "1 property published.")
		},
	},
	{
		// The addon is removed: the agent stops, and its hook deletes the claims.
		name: "removal", before: claimsOf(kept, edited),
		// An agent that has stopped does not start again, whatever etcd was restored to; and a hook cannot
		// delete what is not served.
		without: append(slices.Clone(ofAPIs), restored),
		setup: func(w *world) {
			w.sets(kept, "1")
			w.sets(edited, "1")
		},
		act: func(w *world) {
			w.cleansUp()
			w.reports("PublishingStopped", "its ClusterClaims are deleted")
			w.edits(edited, `{"spec":{"value":"2"}}`)
			w.MustCreate(property(taken, "1"))
		},
	},
}

// removesAPI deletes a CRD with all objects, and returns a function that creates it again.
func (w *world) removesAPI(name string) (again func()) {
	w.T.Helper()
	by := admin{w.Client}
	ctx := context.WithoutCancel(w.T.Context())
	definition, _, err := by.remove(ctx, name)
	apitest.Must(w.T, err)
	apitest.Must(w.T, by.insist(ctx, func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := by.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if err == nil {
			err = fmt.Errorf("%s is still there", name)
		}
		return client.IgnoreNotFound(err)
	}))
	return func() {
		w.T.Helper()
		apitest.Must(w.T, by.recreate(ctx, definition))
	}
}
