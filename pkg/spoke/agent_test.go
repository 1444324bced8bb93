package spoke

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

var spokeOnly = map[string]string{"open-cluster-management.io/spoke-only": ""}

func TestPropertyIsPublishedEditedAndDeleted(t *testing.T) {
	w := newWorld(t, allVersions)
	w.start()
	w.eventuallyCondition("True Published There are no properties.")

	location := spoketest.Property("v1beta1", "location.example.com", "eu", nil)
	w.spoke.MustCreate(location)
	w.eventuallyClaims(map[string]string{"location.example.com*": "eu"})
	want := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "location.example.com",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "about.k8s.io/v1beta1", Kind: "ClusterProperty", Name: location.GetName(), UID: location.GetUID(),
			}},
		},
		Spec: clusterv1alpha1.ClusterClaimSpec{Value: "eu"},
	}
	claim := w.claim("location.example.com")
	volatile := cmpopts.IgnoreFields(
		metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields",
	)
	if diff := cmp.Diff(
		want, claim, volatile, cmpopts.IgnoreFields(clusterv1alpha1.ClusterClaim{}, "TypeMeta"),
	); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	w.eventuallyCondition("True Published 1 property published.")

	w.settle()
	w.edit("v1beta1", "location.example.com", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location.example.com*": "us"})
	w.wrote("one edit is one write", "PATCH clusterclaims")

	w.edit("v1beta1", "location.example.com", `{"metadata":{"labels":{"team":"a"}}}`)
	w.wrote("a label of others is no write", "PATCH clusterclaims")

	w.wire.Reset()
	w.spoke.MustDelete(location)
	w.eventuallyClaims(map[string]string{})
	w.eventuallyCondition("True Published There are no properties.")
	w.wrote("a deletion is one delete and one report", "DELETE clusterclaims", "PATCH managedclusteraddons/status")
}

func TestObstaclesAreReportedAndResolved(t *testing.T) {
	w := newWorld(t, allVersions)
	theirs := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "taken", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
	}
	w.spoke.MustCreate(theirs)
	for _, name := range []string{"fine", "long", "private", "taken"} {
		w.spoke.MustCreate(spoketest.Property("v1beta1", name, "v", nil))
	}
	w.start()
	w.eventuallyClaims(map[string]string{"fine*": "v", "long*": "v", "private*": "v", "taken": "theirs"})
	w.eventuallyCondition(
		"False PartiallyPublished 3 of 4 properties published. Left out: taken (a ClusterClaim of that name was " +
			"created by another client).",
	)

	w.edit("v1beta1", "long", `{"spec":{"value":"`+strings.Repeat("x", 1025)+`"}}`)
	w.edit("v1beta1", "private", `{"metadata":{"labels":{"open-cluster-management.io/spoke-only":"no"}}}`)
	w.eventuallyClaims(map[string]string{"fine*": "v", "taken": "theirs"})
	w.eventuallyCondition("False PartiallyPublished 1 of 4 properties published. " +
		"Left out: long (its value is longer than 1024 bytes), taken (a ClusterClaim of that name was created by another " +
		"client). Kept on the spoke by label: private.")

	w.edit("v1beta1", "long", `{"spec":{"value":"`+strings.Repeat("x", 1024)+`"}}`)
	w.edit("v1beta1", "private", `{"metadata":{"labels":{"open-cluster-management.io/spoke-only":null}}}`)
	w.spoke.MustDelete(theirs)
	w.eventuallyClaims(map[string]string{"fine*": "v", "long*": strings.Repeat("x", 1024), "private*": "v", "taken*": "v"})
	w.eventuallyCondition("True Published 4 properties published.")
}

func TestAlteredClaimsAreRepairedAndForeignPartsStay(t *testing.T) {
	w := newWorld(t, allVersions)
	location := spoketest.Property("v1beta1", "location", "eu", nil)
	w.spoke.MustCreate(location)
	w.start()
	w.eventuallyClaims(map[string]string{"location*": "eu"})

	claim := w.claim("location")
	altered := claim.DeepCopy()
	altered.Spec.Value = "moon"
	altered.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}}
	altered.Labels["team"] = "a"
	altered.Annotations = map[string]string{"note": "b"}
	apitest.Must(t, w.spoke.Patch(t.Context(), altered, client.MergeFrom(claim)))
	w.eventuallyClaims(map[string]string{"location*": "eu"})

	want := altered.DeepCopy()
	want.Spec.Value = "eu"
	want.OwnerReferences = append(want.OwnerReferences, claim.OwnerReferences...)
	if diff := cmp.Diff(
		want,
		w.claim("location"),
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "Generation", "ManagedFields"),
	); diff != "" {
		t.Errorf("repaired claim (-want +got):\n%s", diff)
	}

	w.spoke.MustDelete(w.claim("location"))
	w.eventuallyClaims(map[string]string{"location*": "eu"})
}

func TestRestartWritesNothing(t *testing.T) {
	w := newWorld(t, allVersions)
	claims := map[string]string{}
	for i := range 15 {
		name := fmt.Sprintf("p%02d", i)
		w.spoke.MustCreate(spoketest.Property("v1beta1", name, "v", nil))
		claims[name+"*"] = "v"
	}
	w.spoke.MustCreate(spoketest.Property("v1beta1", "private", "v", spokeOnly))
	stop := w.start()
	// The report counts claims that are about to follow, so wait for the claims.
	w.eventuallyClaims(claims)
	w.eventuallyCondition("True Published 15 of 16 properties published. Kept on the spoke by label: private.")
	w.settle()
	stop()

	w.start()
	w.wrote("no writes after a restart")
}

func TestLeftoversOfAnAgentThatWasDownAreDeleted(t *testing.T) {
	w := newWorld(t, allVersions)
	gone, kept := spoketest.Property("v1beta1", "gone", "v", nil), spoketest.Property("v1beta1", "kept", "v", nil)
	w.spoke.MustCreate(gone)
	w.spoke.MustCreate(kept)
	stop := w.start()
	w.eventuallyClaims(map[string]string{"gone*": "v", "kept*": "v"})
	stop()

	w.spoke.MustDelete(gone)
	w.spoke.MustCreate(
		&clusterv1alpha1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "theirs"},
			Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "v"},
		},
	)
	stop = w.start()
	w.eventuallyClaims(map[string]string{"kept*": "v", "theirs": "v"})
	w.claimsStay(map[string]string{"kept*": "v", "theirs": "v"})
	stop()

	w.unserve()
	w.start()
	w.eventuallyClaims(map[string]string{"theirs": "v"})
}

func TestClaimLimit(t *testing.T) {
	w := newWorld(t, allVersions)
	w.opts.ClaimLimit = 2
	w.spoke.MustCreate(
		&clusterv1alpha1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "id.k8s.io"},
			Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "v"},
		},
	)
	for _, name := range []string{"a", "b", "c"} {
		w.spoke.MustCreate(spoketest.Property("v1beta1", name, "v", nil))
	}
	w.start()
	w.eventuallyCondition(
		"False ClaimLimitExceeded 3 properties published. The klusterlet reports 2 custom claims, which cuts off c: " +
			"set the Klusterlet's spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims, and this " +
			"addon's claim limit, to 3 or more.",
	)
}

func TestPropertyAPIIsAddedChangedAndRemoved(t *testing.T) {
	w := newWorld(t, "")
	w.start()
	w.eventuallyCondition(
		"False ClusterPropertyAPIMissing The cluster has no CustomResourceDefinition clusterproperties.about.k8s.io; " +
			"publishing starts once it is installed.",
	)

	w.serve("v1alpha1")
	w.spoke.MustCreate(spoketest.Property("v1alpha1", "location", "eu", nil))
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.eventuallyCondition("True Published 1 property published.")
	first := w.claim("location")
	ownedAt := func(version string) func() string {
		return func() string {
			claim := w.claim("location")
			return cmp.Diff(
				[]string{string(first.UID), "about.k8s.io/" + version},
				[]string{string(claim.UID), claim.OwnerReferences[0].APIVersion},
			)
		}
	}
	w.spoke.Eventually("the claim is owned at v1alpha1", ownedAt("v1alpha1"))

	w.settle()
	w.serve(allVersions)
	w.spoke.Eventually("the same claim is owned at v1beta1", ownedAt("v1beta1"))
	w.wrote("one write for the new version", "PATCH clusterclaims")
	w.edit("v1alpha1", "location", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location*": "us"})

	w.serve("v1alpha1")
	w.spoke.Eventually("the same claim is owned at v1alpha1 again", ownedAt("v1alpha1"))
	w.edit("v1alpha1", "location", `{"spec":{"value":"asia"}}`)
	w.eventuallyClaims(map[string]string{"location*": "asia"})

	w.unserve()
	w.eventuallyClaims(map[string]string{})
	w.eventuallyCondition(
		"False ClusterPropertyAPIMissing The cluster has no CustomResourceDefinition clusterproperties.about.k8s.io; " +
			"publishing starts once it is installed.",
	)

	w.serve("v1beta1")
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.eventuallyCondition("True Published 1 property published.")
	if complaint := w.probe("readyz"); complaint != "" {
		t.Errorf("readyz: %s", complaint)
	}
}

func TestUnreadableVersionsKeepTheClaims(t *testing.T) {
	w := newWorld(t, allVersions)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	w.start()
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.eventuallyCondition("True Published 1 property published.")

	w.serveUnreadable()
	w.eventuallyCondition(
		"False ClusterPropertyAPIMissing CustomResourceDefinition clusterproperties.about.k8s.io serves none of the versions v1beta1, v1alpha1; " +
			"published claims stay as they are until it does.",
	)
	w.claimsStay(map[string]string{"location*": "eu"})

	w.wire.Reset()
	w.serveOnly("v1beta1")
	w.eventuallyCondition("True Published 1 property published.")
	w.wrote("only the report is written", "PATCH managedclusteraddons/status")
}

func TestReportIsRestoredAndOthersConditionsStay(t *testing.T) {
	w := newWorld(t, allVersions)
	theirs := metav1.Condition{
		Type:               "Available",
		Status:             "True",
		Reason:             "R",
		Message:            "m",
		LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0)),
	}
	setConditions := func(conditions ...metav1.Condition) {
		apitest.EditStatus(
			w.hub, w.addon.DeepCopy(), func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions = conditions },
		)
	}
	setConditions(theirs)
	w.start()
	w.eventuallyCondition("True Published There are no properties.")
	w.hub.MustGet(w.addon)
	if diff := cmp.Diff(theirs, w.addon.Status.Conditions[0]); diff != "" {
		t.Errorf("another client's condition changed:\n%s", diff)
	}
	setConditions(theirs)
	w.eventuallyCondition("True Published There are no properties.")
}

func TestAddonOfAnotherUIDIsNotReportedOn(t *testing.T) {
	w := newWorld(t, allVersions)
	w.opts.AddonUID = "another"
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	w.start()
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.hub.Stays(quiet, "no report", func() string { return cmp.Diff("none", w.condition()) })
}

func TestUnreachableHubDelaysOnlyTheReport(t *testing.T) {
	w := newWorld(t, allVersions)
	good, err := os.ReadFile(w.opts.HubKubeconfig)
	apitest.Must(t, err)
	nowhere := hubServer.Config(t)
	nowhere.Host = "https://" + freeAddress(t)
	apitest.Must(t, os.WriteFile(w.opts.HubKubeconfig, apitest.Kubeconfig(t, nowhere, ""), 0o600))
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	counted := func(want int) func() string {
		return func() string { return cmp.Diff(want, len(w.wire.Writes("clusterclaims"))) }
	}
	w.start()
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.spoke.Eventually("one write for a new property", counted(1))
	apitest.Must(t, os.WriteFile(w.opts.HubKubeconfig, []byte("no kubeconfig"), 0o600))
	w.edit("v1beta1", "location", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location*": "us"})

	apitest.Must(t, os.WriteFile(w.opts.HubKubeconfig, good, 0o600))
	w.eventuallyCondition("True Published 1 property published.")
	w.spoke.Eventually("one write more for one edit and a new way to the hub", counted(2))
	w.spoke.Stays(quiet, "one write more for one edit and a new way to the hub", counted(2))
}

// The klusterlet renews the certificate, another client alters the Secret, the klusterlet
// registers the agent by token, and its ServiceAccount is recreated: the agent keeps
// reporting, without a restart.
func TestReportsSurviveEveryChangeOfTheHubsKubeconfig(t *testing.T) {
	w := newWorld(t, allVersions)
	cluster := w.opts.ClusterName
	asUser := func() *rest.Config { return hubServer.User(t, agentByCertificate(cluster)) }
	secret := &mounted{t: t, dir: t.TempDir()}
	w.opts.HubKubeconfig = filepath.Join(secret.dir, "kubeconfig")
	first := asUser()
	secret.replace(secretByCertificate(t, first))
	w.start()
	w.eventuallyCondition("True Published There are no properties.")

	secret.replace(with(secretByCertificate(t, first), "tls.crt", "no certificate"))
	w.eventuallyCondition(unusableSecret(w, "its certificate and key are not a pair"))
	w.spoke.MustCreate(spoketest.Property("v1beta1", "a", "v", nil))
	w.eventuallyClaims(map[string]string{"a*": "v"})
	secret.replace(secretByCertificate(t, asUser()))
	w.eventuallyCondition("True Published 1 property published.")

	secret.replace(secretByCertificate(t, withCA(first, "no certificate")))
	w.eventuallyCondition(unusableSecret(w, "its CA certificates cannot be read"))
	w.edit("v1beta1", "a", `{"spec":{"value":"w"}}`)
	w.eventuallyClaims(map[string]string{"a*": "w"})

	for _, name := range []string{"b", "c"} {
		secret.replace(secretByToken(t, first, w.tokenOnHub(cluster)))
		w.spoke.MustCreate(spoketest.Property("v1beta1", name, "v", nil))
		w.eventuallyCondition(fmt.Sprintf("True Published %d properties published.", map[string]int{"b": 2, "c": 3}[name]))
	}
}

func unusableSecret(w *world, problem string) string {
	return "False HubKubeconfigInvalid The Secret " + w.opts.InstallNamespace +
		"/cluster-inventory-hub-kubeconfig on the cluster cannot be used: " + problem +
		". The agent continues with the previous one; delete the Secret to have the klusterlet recreate it."
}

// The agent is restarted while its Secret cannot be used: it publishes, sends nothing to
// any hub, and is alive but not ready. It reports as soon as the Secret is correct, without
// another restart.
func TestAnAgentStartsWhileItsSecretCannotBeUsed(t *testing.T) {
	w := newWorld(t, allVersions)
	good, err := os.ReadFile(w.opts.HubKubeconfig)
	apitest.Must(t, err)
	apitest.Must(t, os.WriteFile(w.opts.HubKubeconfig, nil, 0o600))
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	apitest.Run(t, func(ctx context.Context) error { return Run(ctx, w.opts) })
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	if alive, ready, reports := w.probe("healthz"), w.probe("readyz"),
		w.probe("readyz/reporting"); alive != "" || ready == "" || reports == "" {
		t.Errorf("alive: %q, ready: %q, reports: %q", alive, ready, reports)
	}
	w.spoke.Eventually("it publishes", func() string { return w.probe("readyz/publishing") })
	w.edit("v1beta1", "location", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location*": "us"})
	for _, call := range w.wire.Calls() {
		if call.Mentions("managedclusteraddons") {
			t.Errorf("without a hub, it sent %s", call)
		}
	}

	apitest.Must(t, os.WriteFile(w.opts.HubKubeconfig, good, 0o600))
	w.eventuallyCondition("True Published 1 property published.")
	w.spoke.Eventually("it is ready", func() string { return w.probe("readyz") })
	for _, path := range []string{"", "metrics", "debug/pprof/", "configz"} {
		if response := w.probe(path); !strings.HasPrefix(response, "404 ") {
			t.Errorf("/%s is served beside the probes: %q", path, response)
		}
	}
}

func TestCleanup(t *testing.T) {
	w := newWorld(t, allVersions)
	for _, name := range []string{"a", "b"} {
		w.spoke.MustCreate(spoketest.Property("v1beta1", name, "v", nil))
	}
	w.spoke.MustCreate(
		&clusterv1alpha1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "theirs"},
			Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "v"},
		},
	)
	opts := w.hookOptions()
	marker := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.opts.InstallNamespace, Name: "cluster-inventory-cleanup"},
	}
	w.spoke.MustMerge(marker, `{"data":{"addonUID":"earlier","stopped":"earlier"}}`)
	stop := w.start()
	w.eventuallyClaims(map[string]string{"a*": "v", "b*": "v", "theirs": "v"})

	apitest.Must(t, Cleanup(t.Context(), opts))
	left := map[string]string{"theirs": "v"}
	if diff := cmp.Diff(left, w.claims()); diff != "" {
		t.Fatalf("claims after the clean-up (-want +got):\n%s", diff)
	}
	w.spoke.MustGet(marker)
	if diff := cmp.Diff(
		map[string]string{"addonUID": w.opts.AddonUID, "stopped": w.opts.AddonUID}, marker.Data,
	); diff != "" {
		t.Errorf("marker (-want +got):\n%s", diff)
	}
	w.eventuallyCondition("False PublishingStopped The addon is being removed; its ClusterClaims are deleted.")

	w.edit("v1beta1", "a", `{"spec":{"value":"edited"}}`)
	w.claimsStay(left)
	stop()
	w.wire.Reset()
	w.start()
	w.wire.Quiet(t, quiet, "of an agent that starts on a cleaned-up spoke")
	if diff := cmp.Diff(left, w.claims()); diff != "" {
		t.Errorf("claims after a restart (-want +got):\n%s", diff)
	}
	apitest.Must(t, Cleanup(t.Context(), opts))
}

// An agent may start while its cache is older than the hook's request: it publishes nothing before it has read,
// from the API server itself, whether there is one.
func TestNothingIsPublishedBeforeTheRemovalIsKnown(t *testing.T) {
	w := newWorld(t, allVersions)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "a", "v", nil))
	var reads atomic.Int64
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource != "configmaps" || call.IsWatch() || call.Query.Has("resourceVersion") {
			return apitest.Fault{}
		}
		reads.Add(1)
		return apitest.Fault{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"}
	})
	apitest.Run(t, func(ctx context.Context) error { return Run(ctx, w.opts) })
	w.spoke.Eventually("the marker is read", func() string {
		if reads.Load() == 0 {
			return "not yet"
		}
		return ""
	})
	w.wire.Quiet(t, quiet, "before the marker is read")
	w.wire.Fail(nil)
	w.eventuallyClaims(map[string]string{"a*": "v"})
}

func TestCleanupWithoutAgent(t *testing.T) {
	w := newWorld(t, allVersions)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "a", "v", nil))
	stop := w.start()
	w.eventuallyClaims(map[string]string{"a*": "v"})
	stop()

	opts := w.hookOptions()
	opts.Timeout = 100 * time.Millisecond
	apitest.Must(t, Cleanup(t.Context(), opts))
	if diff := cmp.Diff(map[string]string{}, w.claims()); diff != "" {
		t.Errorf("claims after the clean-up (-want +got):\n%s", diff)
	}
}

// hookOptions are the options of a hook with the rights of its own service account.
func (w *world) hookOptions() CleanupOptions {
	w.t.Helper()
	spoketest.Grant(w.spoke, "50-cleanup.yaml", w.opts.InstallNamespace)
	cfg := spokeServer.User(w.t, "system:serviceaccount:"+w.opts.InstallNamespace+":cluster-inventory-cleanup")
	return CleanupOptions{
		Kubeconfig:       w.spoke.File("hook.kubeconfig", apitest.Kubeconfig(w.t, cfg, "")),
		AddonUID:         w.opts.AddonUID,
		InstallNamespace: w.opts.InstallNamespace,
		Timeout:          apitest.Patience,
	}
}

// serveUnreadable makes the CRD serve only a version that the agent does not know,
// as a later release of the API may.
func (w *world) serveUnreadable() {
	w.t.Helper()
	crd := spoketest.CRD(w.t, "v1beta1", "v1alpha1")
	w.spoke.MustGet(crd)
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	later := crd.Spec.Versions[0].DeepCopy()
	later.Name, later.Served, later.Storage = "v1", true, false
	crd.Spec.Versions = append(crd.Spec.Versions, *later)
	apitest.Must(w.t, w.spoke.Update(context.Background(), crd))
}

// serveOnly serves one of the CRD's versions again. With both, discovery may list either
// first, and the claims' owner references would be written again.
func (w *world) serveOnly(version string) {
	w.t.Helper()
	crd := spoketest.CRD(w.t, "v1beta1", "v1alpha1")
	now := crd.DeepCopy()
	w.spoke.MustGet(now)
	crd.ResourceVersion = now.ResourceVersion
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == version
	}
	apitest.Must(w.t, w.spoke.Update(context.Background(), crd))
}

// A version that vanishes before it was ever read must neither delay the session for
// the next one nor keep the agent from stopping.
func TestSessionEndsAlthoughItsCachesNeverSynced(t *testing.T) {
	w := newWorld(t, "")
	cfg, err := kube.Config(w.opts.Kubeconfig)
	apitest.Must(t, err)
	hub, err := kube.Config(w.opts.HubKubeconfig)
	apitest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		now := situation{api: property.API{Version: "v1beta1"}, hub: hub}
		ended <- (&session{cfg: cfg, opts: w.opts}).Run(ctx, now, func() { t.Error("ready without having read a property") })
	}()
	select {
	case err := <-ended:
		t.Fatalf("it ended before it was told to: %v", err)
	case <-time.After(quiet):
	}
	cancel()
	select {
	case err := <-ended:
		apitest.Must(t, err)
	case <-time.After(apitest.Patience):
		t.Fatal("it does not end")
	}
}
