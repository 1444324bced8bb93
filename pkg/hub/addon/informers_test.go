package addon

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestAddonChanged(t *testing.T) {
	set := func(conditionType, status string) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = append(a.Status.Conditions, ocmtest.Condition(conditionType, status, "R", ""))
		}
	}
	gets := func(resource addonv1beta1.ConfigGroupResource, name, hash string) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
				ConfigGroupResource: resource,
				DesiredConfig: &addonv1beta1.ConfigSpecHash{
					ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: hash,
				},
			}}
		}
	}
	both := func(changes ...func(*addonv1beta1.ManagedClusterAddOn)) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			for _, change := range changes {
				change(a)
			}
		}
	}
	names := func(name string) func(*addonv1beta1.ManagedClusterAddOn) {
		return func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Spec.Configs = []addonv1beta1.AddOnConfig{{
				ConfigGroupResource: addontest.AgentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: name},
			}}
		}
	}
	there := configurationExists(func(of configuration.Kind, name addonv1beta1.ConfigReferent) bool {
		return of == configuration.RevisionKind() && name.Name == "revision" || of == configuration.DeploymentConfigKind() && name.Name == "config"
	})
	tests := map[string]struct {
		before func(*addonv1beta1.ManagedClusterAddOn)
		change func(*addonv1beta1.ManagedClusterAddOn)
		want   bool
	}{
		"a revision whose hash follows":      {change: gets(addontest.AgentRevisions, "revision", "")},
		"a configuration whose hash follows": {change: gets(addontest.DeploymentConfigs, "config", "")},
		"a revision whose hash follows, at once with the turn": {
			change: both(gets(addontest.AgentRevisions, "revision", ""), set("Configured", "True")),
		},
		"its deletion before the hash": {
			change: both(gets(addontest.AgentRevisions, "revision", ""), func(a *addonv1beta1.ManagedClusterAddOn) {
				a.DeletionTimestamp = ptr.To(metav1.Now())
			}), want: true,
		},
		"the hash": {
			before: gets(addontest.AgentRevisions, "revision", ""), change: gets(addontest.AgentRevisions, "revision", "h"), want: true,
		},
		"a revision with its hash":            {change: gets(addontest.AgentRevisions, "revision", "h"), want: true},
		"a revision that does not exist":      {change: gets(addontest.AgentRevisions, "gone", ""), want: true},
		"a configuration that does not exist": {change: gets(addontest.DeploymentConfigs, "revision", ""), want: true},
		"a revision that the addon names itself": {
			before: names("revision"), change: gets(addontest.AgentRevisions, "revision", ""), want: true,
		},
		"nothing": {change: func(*addonv1beta1.ManagedClusterAddOn) {}},
		"only the version and managed fields": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.ResourceVersion = "2"
			a.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}},
		"the condition of the inventory":   {change: set("ProfilesSynced", "True")},
		"the condition of the credentials": {change: set("CredentialsSynced", "True")},
		"the condition of the agent":       {change: set("PropertiesPublished", "True")},
		"the condition of OCM's rollout":   {change: set("Progressing", "False")},
		"the condition of the certificate": {change: set("ClusterCertificateRotated", "True")},
		"the progress of a configuration": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.ConfigReferences[0].LastAppliedConfig = &addonv1beta1.ConfigSpecHash{SpecHash: "h"}
			a.Status.ConfigReferences[0].LastObservedGeneration = 3
		}},
		"whether it is available":             {change: set("Available", "Unknown"), want: true},
		"whether it is registered":            {change: set("RegistrationApplied", "True"), want: true},
		"whether manifests are applied":       {change: set("ManifestApplied", "True"), want: true},
		"whether the hook is done":            {change: set("HookManifestCompleted", "True"), want: true},
		"that it has its configuration":       {change: set("Configured", "True"), want: true},
		"that it waits for its configuration": {change: set("Configured", "False")},
		"the desired configuration": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.ConfigReferences[0].DesiredConfig = &addonv1beta1.ConfigSpecHash{SpecHash: "h"}
		}, want: true},
		"its deletion": {change: func(a *addonv1beta1.ManagedClusterAddOn) { a.DeletionTimestamp = ptr.To(metav1.Now()) },
			want: true},
		"its owner": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
		}, want: true},
		"its finalizers": {change: func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = []string{"f"} }, want: true},
		"its annotations": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Annotations = map[string]string{"a": "b"}
		}, want: true},
		"another installation": {change: func(a *addonv1beta1.ManagedClusterAddOn) { a.UID = "2" }, want: true},
		"its registration": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Registrations = []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}
		}, want: true},
		"its health check": {change: func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.HealthCheck.Mode = "Lease" },
			want: true},
		"its install namespace": {change: func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Namespace = "n" }, want: true},
		"its supported configs": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{{}}
		}, want: true},
		"its own configurations": {change: func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Spec.Configs = []addonv1beta1.AddOnConfig{{}}
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := ocmtest.Addon("c1")
			before.UID, before.ResourceVersion = "1", "1"
			before.Status.ConfigReferences = []addonv1beta1.ConfigReference{{}}
			if test.before != nil {
				test.before(before)
			}
			after := before.DeepCopy()
			test.change(after)
			if got := there.addonChanged(before, after); got != test.want {
				t.Errorf("changed: %t", got)
			}
			if len(before.Status.ConfigReferences) != 1 || before.ResourceVersion != "1" {
				t.Errorf("the cached addon was changed: %+v", before)
			}
		})
	}
}

func TestHandlersReceiveOnlyChanges(t *testing.T) {
	one, another := ocmtest.Addon("c1"), ocmtest.Addon("c1")
	another.Name = "another"
	events := &eventsOnly{objects: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)}
	apitest.Must(t, events.objects.Add(one))
	apitest.Must(t, events.objects.Add(another))
	var seen []string
	passed := make(chan string, 10)
	_, err := changes[*addonv1beta1.ManagedClusterAddOn]{
		events, t.Context(),
		func(before, after *addonv1beta1.ManagedClusterAddOn) bool { return before.Name != after.Name },
	}.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { seen = append(seen, "add") },
		UpdateFunc: func(_, after any) { passed <- after.(*addonv1beta1.ManagedClusterAddOn).Name },
		DeleteFunc: func(any) { seen = append(seen, "delete") },
	})
	apitest.Must(t, err)
	events.handler.OnAdd(one, true)
	events.handler.OnUpdate(one, one)
	events.handler.OnUpdate(one, another)
	events.handler.OnDelete(one)
	if diff := cmp.Diff([]string{"add", "delete"}, seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := <-passed; got != "another" || len(passed) > 0 { // the other one would be the first
		t.Errorf("passed on %s, and %d more", got, len(passed))
	}
}

// Several changes within a short while are forwarded once, in their final state.
func TestBurstOfChangesIsForwardedOnce(t *testing.T) {
	source := fcache.NewFakeControllerSource()
	informer := toolscache.NewSharedIndexInformer(source, &addonv1beta1.ManagedClusterAddOn{}, noResync, nil)
	ctx, cancel := context.WithCancel(t.Context())
	updates := make(chan string, 10)
	registration, err := changes[*addonv1beta1.ManagedClusterAddOn]{
		informer, ctx, configurationExists(nil).addonChanged,
	}.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) { updates <- after.(*addonv1beta1.ManagedClusterAddOn).Annotations["n"] },
	})
	apitest.Must(t, err)
	addon := ocmtest.Addon("c1")
	source.Add(addon)
	go informer.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		t.Fatal("not synced")
	}
	edit := func(n string) {
		addon = addon.DeepCopy()
		addon.Annotations = map[string]string{"n": n}
		source.Modify(addon)
	}
	for _, n := range []string{"1", "2", "3"} {
		edit(n)
	}
	if got := <-updates; got != "3" {
		t.Errorf("passed on first: %s", got)
	}
	edit("4")
	if got := <-updates; got != "4" {
		t.Errorf("passed on next: %s", got)
	}
	cancel()
	if left := len(updates); left > 0 {
		t.Errorf("%d more were passed on", left)
	}
}

func TestCacheKeepsWhatTheFrameworkRewrites(t *testing.T) {
	conditions := []metav1.Condition{
		ocmtest.Condition("Theirs", "True", "R", "long"), ocmtest.Condition("ProfilesSynced", "True", "Synced", "m"),
	}
	addon := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Annotations: map[string]string{"a": "b"},
			Finalizers: []string{"f"},
		},
		Spec: addonv1beta1.ManagedClusterAddOnSpec{Configs: []addonv1beta1.AddOnConfig{{}}},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			Namespace: "x", HealthCheck: addonv1beta1.HealthCheck{Mode: "Customized"}, Conditions: conditions,
		},
	}
	want := addon.DeepCopy()
	addon.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	options := CacheOptions()
	ocmtest.CheckCached(t, options, map[string]ocmtest.Cached{"ManagedClusterAddOn": {In: addon, Want: want}})
	for kind, byObject := range options {
		if _, isAddon := kind.(*addonv1beta1.ManagedClusterAddOn); isAddon &&
			byObject.Field.String() != "metadata.name=cluster-inventory" {
			t.Errorf("cached: %s", byObject.Field)
		}
	}
}

func TestWorkChanged(t *testing.T) {
	trim := manifests.NewWorkTrimmer().Trim
	tests := map[string]struct {
		change func(*workv1.ManifestWork)
		want   bool
	}{
		"only the version": {change: func(w *workv1.ManifestWork) { w.ResourceVersion = "2" }},
		"a manifest": {change: func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Secret"}`)
		}, want: true},
		"a manifest less": {change: func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:]
		}, want: true},
		"the feedback": {change: func(w *workv1.ManifestWork) {
			w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
				StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{Name: "ReadyReplicas"}}},
			}}
		}, want: true},
		"whether it is applied": {change: func(w *workv1.ManifestWork) {
			w.Status.Conditions = []metav1.Condition{ocmtest.Condition("Applied", "True", "R", "")}
		}, want: true},
		"its labels":   {change: func(w *workv1.ManifestWork) { w.Labels = map[string]string{"l": "1"} }, want: true},
		"its deletion": {change: func(w *workv1.ManifestWork) { w.DeletionTimestamp = ptr.To(metav1.Now()) }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := rendered(t, values(), "c1"), rendered(t, values(), "c1")
			test.change(after)
			if got := workChanged(addontest.Transformed(trim, before), addontest.Transformed(trim, after)); got != test.want {
				t.Errorf("changed: %t", got)
			}
		})
	}
}

func TestReachableAgain(t *testing.T) {
	cluster := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{}
		if status != "" {
			c.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterConditionAvailable", Status: status}}
		}
		return c
	}
	tests := map[string]struct {
		before, after metav1.ConditionStatus
		want          bool
	}{
		"back, and healthy":      {before: "Unknown", after: "True", want: true},
		"back, and not healthy":  {before: "Unknown", after: "False", want: true},
		"joined again":           {before: "Unknown", after: "", want: true},
		"gone":                   {before: "True", after: "Unknown"},
		"still gone":             {before: "Unknown", after: "Unknown"},
		"a heartbeat":            {before: "True", after: "True"},
		"healthy but never gone": {before: "False", after: "True"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reachableAgain(cluster(test.before), cluster(test.after)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestClusterMatters(t *testing.T) {
	with := func(registries, another string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"open-cluster-management.io/image-registries": registries, "another": another,
		}}}
	}
	if !clusterMatters(with("{}", ""), with(`{"registries":[]}`, "")) {
		t.Error("its registries do not matter")
	}
	if clusterMatters(with("{}", "a"), with("{}", "b")) {
		t.Error("another annotation matters")
	}
}

func TestOnlyFailuresAreRetried(t *testing.T) {
	never := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour)
	queue := workqueue.NewTypedRateLimitingQueue(never)
	defer queue.ShutDown()
	queue.AddRateLimited("failed/cluster-inventory")
	queue.AddRateLimited("gone/cluster-inventory")
	retryFailed(queue, []string{"failed/cluster-inventory", "fine/cluster-inventory"})
	if queue.Len() != 1 {
		t.Fatalf("%d keys, want the one that failed", queue.Len())
	}
	if key, _ := queue.Get(); key != "failed/cluster-inventory" {
		t.Errorf("enqueued %s", key)
	}
}

// TestCacheSharesWhatWorksAndAddonsRepeat also checks that sharing changes no content.
func TestCacheSharesWhatWorksAndAddonsRepeat(t *testing.T) {
	trimWork := kube.Trimmed(manifests.NewWorkTrimmer().Trim)
	trimAddon := kube.Trimmed((&addonTrimmer{}).trim)
	work := func() *workv1.ManifestWork {
		work := &workv1.ManifestWork{}
		work.Labels, work.Annotations = map[string]string{"l": "v"}, map[string]string{"a": "v"}
		work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{FeedbackRules: []workv1.FeedbackRule{{Type: "T"}}}}
		work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue}}
		return work
	}
	addon := func() *addonv1beta1.ManagedClusterAddOn {
		addon := &addonv1beta1.ManagedClusterAddOn{}
		addon.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
		addon.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{{Resource: "r"}}
		addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			DesiredConfig: &addonv1beta1.ConfigSpecHash{SpecHash: "h"},
		}}
		return addon
	}
	twice := func(transform toolscache.TransformFunc, object func() client.Object) (client.Object, client.Object) {
		t.Helper()
		var out [2]client.Object
		for i := range out {
			trimmed, err := transform(object())
			apitest.Must(t, err)
			out[i] = trimmed.(client.Object)
		}
		if diff := cmp.Diff(object(), out[1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
		return out[0], out[1]
	}
	a, b := twice(trimWork, func() client.Object { return work() })
	one, another := a.(*workv1.ManifestWork), b.(*workv1.ManifestWork)
	c, d := twice(trimAddon, func() client.Object { return addon() })
	first, second := c.(*addonv1beta1.ManagedClusterAddOn), d.(*addonv1beta1.ManagedClusterAddOn)
	for what, pair := range map[string][2]any{
		"labels":            {one.Labels, another.Labels},
		"annotations":       {one.Annotations, another.Annotations},
		"manifest configs":  {one.Spec.ManifestConfigs, another.Spec.ManifestConfigs},
		"conditions":        {one.Status.Conditions, another.Status.Conditions},
		"owners":            {first.OwnerReferences, second.OwnerReferences},
		"supported configs": {first.Status.SupportedConfigs, second.Status.SupportedConfigs},
		"configurations":    {first.Status.ConfigReferences, second.Status.ConfigReferences},
	} {
		if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
			t.Errorf("%s are held twice", what)
		}
	}
}
