package release

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

const hookFinalizer = "addon.open-cluster-management.io/addon-pre-delete"

func TestDecideOnTheAddon(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	deleted := func(d time.Duration) *addonv1beta1.ManagedClusterAddOn {
		at := ago(d)
		return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &at}}
	}
	cluster := func(status metav1.ConditionStatus, d time.Duration) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
			{Type: "HubAcceptedManagedCluster", Status: metav1.ConditionTrue},
			{Type: "ManagedClusterConditionAvailable", Status: status, LastTransitionTime: ago(d)},
		}}}
	}
	neverSeen := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Hour)}}
	const timeout = 5 * time.Minute
	const atDeletion = 25 * time.Minute // that much later the Job times out

	tests := map[string]struct {
		addon   *addonv1beta1.ManagedClusterAddOn
		cluster *clusterv1.ManagedCluster
		began   time.Duration // ago; zero is long ago

		delivered time.Duration // ago; zero is never
		want      release
	}{
		"not being removed": {
			addon:   &addonv1beta1.ManagedClusterAddOn{},
			cluster: cluster(metav1.ConditionUnknown, time.Hour),
		},
		"the spoke is there: its Job gets half an hour": {
			addon:   deleted(20 * time.Minute),
			cluster: cluster(metav1.ConditionTrue, 2*time.Hour),
			want:    release{wait: 10 * time.Minute},
		},
		"the Job has not succeeded a moment before its time is over": {
			addon:   deleted(30*time.Minute - time.Second),
			cluster: cluster(metav1.ConditionTrue, 2*time.Hour),
			want:    release{wait: time.Second},
		},
		"the Job has not succeeded in its time": {
			addon:   deleted(30 * time.Minute),
			cluster: cluster(metav1.ConditionTrue, 2*time.Hour),
			want:    release{addon: true, stuck: true},
		},
		"no manager ran for most of that time: the Job gets all of it": {
			addon:   deleted(24 * time.Hour),
			cluster: cluster(metav1.ConditionTrue, 48*time.Hour),
			began:   10 * time.Minute,
			want:    release{wait: 20 * time.Minute},
		},
		"managers have restarted since: the Job's time does not start again": {
			addon:     deleted(31 * time.Minute),
			cluster:   cluster(metav1.ConditionTrue, 48*time.Hour),
			began:     2 * time.Minute,
			delivered: 30 * time.Minute,
			want:      release{addon: true, stuck: true},
		},
		"managers have restarted since: the Job gets the rest of its time": {
			addon:     deleted(24 * time.Hour),
			cluster:   cluster(metav1.ConditionTrue, 48*time.Hour),
			began:     2 * time.Minute,
			delivered: 10 * time.Minute,
			want:      release{wait: 20 * time.Minute},
		},
		"a manager has just started: the Job may have succeeded meanwhile": {
			addon:     deleted(24 * time.Hour),
			cluster:   cluster(metav1.ConditionTrue, 48*time.Hour),
			began:     time.Second,
			delivered: 23 * time.Hour,
			want:      release{wait: 59 * time.Second},
		},
		"the ManifestWork is that of an earlier removal": {
			addon:     deleted(20 * time.Minute),
			cluster:   cluster(metav1.ConditionTrue, 48*time.Hour),
			delivered: 24 * time.Hour,
			want:      release{wait: 10 * time.Minute},
		},
		"no manager ran since the spoke is gone: it is unreachable all the same": {
			addon:   deleted(24 * time.Hour),
			cluster: cluster(metav1.ConditionUnknown, 24*time.Hour),
			began:   time.Second,
			want:    release{addon: true},
		},
		"a spoke that is reachable at times does not delay it forever": {
			addon:   deleted(30 * time.Minute),
			cluster: cluster(metav1.ConditionUnknown, time.Minute),
			want:    release{addon: true, stuck: true},
		},
		"a spoke that is reachable at times: the earlier limit": {
			addon:   deleted(28 * time.Minute),
			cluster: cluster(metav1.ConditionUnknown, time.Minute),
			want:    release{wait: 2 * time.Minute},
		},
		"removed just now from a spoke long gone: it gets the whole timeout": {
			addon: deleted(0), cluster: cluster(metav1.ConditionUnknown, time.Hour), want: release{wait: timeout},
		},
		"the spoke was lost during the clean-up: it gets the whole timeout": {
			addon:   deleted(atDeletion),
			cluster: cluster(metav1.ConditionUnknown, time.Minute),
			want:    release{wait: 4 * time.Minute},
		},
		"a moment before the timeout": {
			addon:   deleted(timeout - time.Second),
			cluster: cluster(metav1.ConditionUnknown, time.Hour),
			want:    release{wait: time.Second},
		},
		"at the timeout": {
			addon:   deleted(timeout),
			cluster: cluster(metav1.ConditionUnknown, time.Hour),
			want:    release{addon: true},
		},
		"the spoke's API server is down: unreachable": {
			addon:   deleted(time.Hour),
			cluster: cluster(metav1.ConditionFalse, 6*time.Minute),
			want:    release{addon: true},
		},
		"a cluster that never joined": {
			addon:   deleted(6 * time.Minute),
			cluster: neverSeen,
			want:    release{addon: true},
		},
		"a cluster that never joined, removed just now": {
			addon:   deleted(time.Minute),
			cluster: neverSeen,
			want:    release{wait: 4 * time.Minute},
		},
		"the cluster was taken off the hub":          {addon: deleted(6 * time.Minute), want: release{addon: true}},
		"the cluster was taken off the hub just now": {addon: deleted(time.Minute), want: release{wait: 4 * time.Minute}},
		"a spoke whose clock is ahead cannot hold it up": {
			addon: deleted(6 * time.Minute), cluster: cluster(metav1.ConditionFalse, -24*time.Hour), want: release{addon: true},
		},
		"neither is on the hub": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var start jobStart
			if test.began > 0 {
				start.manager = now.Add(-test.began)
			}
			if test.delivered > 0 {
				start.delivered = now.Add(-test.delivered)
			}
			l := Options{Unreachable: timeout, Job: 30 * time.Minute}
			if got := decideRelease(test.addon, test.cluster, l, start, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestJobTimeoutIsNeverTheShorterOne(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	deleted := metav1.NewTime(now.Add(-time.Hour))
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}
	reachable := &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
		{Type: "ManagedClusterConditionAvailable", Status: metav1.ConditionTrue},
	}}}
	got := decideRelease(addon, reachable, Options{Unreachable: 2 * time.Hour, Job: time.Minute}, jobStart{}, now)
	if want := (release{wait: time.Hour}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhyNotCleanedUp(t *testing.T) {
	work := func(name string, applied metav1.ConditionStatus, message string, manifests ...string) workv1.ManifestWork {
		w := workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
		if applied != "" {
			w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: applied, Message: message}}
		}
		for _, refusal := range manifests {
			condition := metav1.Condition{Type: "Applied", Status: "True"}
			if refusal != "" {
				condition.Status, condition.Message = "False", refusal
			}
			w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests,
				workv1.ManifestCondition{Conditions: []metav1.Condition{condition}})
		}
		return w
	}
	const hook, deploy = "addon-cluster-inventory-pre-delete", "addon-cluster-inventory-deploy-0"
	tests := map[string]struct {
		works []workv1.ManifestWork
		want  string
	}{
		"no manager could create it": {
			works: []workv1.ManifestWork{work(deploy, "False", "something else")},
			want:  "there is no ManifestWork addon-cluster-inventory-pre-delete to deliver it",
		},
		"the work agent does not run": {
			works: []workv1.ManifestWork{work(hook, "", "")},
			want:  "the spoke's work agent has not applied ManifestWork addon-cluster-inventory-pre-delete",
		},
		"hosted, and the hosting cluster refuses it": {
			works: []workv1.ManifestWork{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "host", Name: hook}},
				func() workv1.ManifestWork {
					w := work(hook+"-hosting-c1", "False", "no")
					w.Namespace = "host"
					return w
				}(),
			},
			want: "the spoke refused it: no",
		},
		"the cluster hosts another one's": {
			works: []workv1.ManifestWork{work(hook+"-hosting-c2", "False", "something else")},
			want:  "there is no ManifestWork addon-cluster-inventory-pre-delete to deliver it",
		},
		"a quota refuses the Job": {
			works: []workv1.ManifestWork{
				work(deploy, "True", ""), work(hook, "False", "failed to apply", "", "exceeded quota: jobs\n\x1b[31m"),
			},
			want: `the spoke refused it: exceeded quota: jobs\n\x1b[31m`,
		},
		"refused, without a word on which manifest": {
			works: []workv1.ManifestWork{work(hook, "False", "failed to apply")},
			want:  "the spoke refused it: failed to apply",
		},
		"its image cannot be pulled": {
			works: []workv1.ManifestWork{work(hook, "True", "", "")},
			want:  "it exists but does not complete; see its pods and events on the spoke",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := whyNotCleanedUp("c1", test.works); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDecideOnTheWorks(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	cluster := func(status metav1.ConditionStatus, since, deleted *metav1.Time) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted},
			Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
				{Type: "ManagedClusterConditionAvailable", Status: status, LastTransitionTime: *since},
			}},
		}
	}
	addon := func(deleted *metav1.Time) *addonv1beta1.ManagedClusterAddOn {
		return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}}
	}
	const timeout = 5 * time.Minute

	tests := map[string]struct {
		addon   *addonv1beta1.ManagedClusterAddOn
		cluster *clusterv1.ManagedCluster
		want    release
	}{
		"the cluster is not being deleted": {cluster: cluster("Unknown", ago(time.Hour), nil)},
		"the spoke is there":               {cluster: cluster("True", ago(time.Hour), ago(time.Hour))},
		"deleted just now":                 {cluster: cluster("Unknown", ago(time.Hour), ago(0)), want: release{wait: timeout}},
		"at the timeout":                   {cluster: cluster("False", ago(time.Hour), ago(timeout)), want: release{works: true}},
		"the addon was removed before its cluster": {
			addon: addon(ago(timeout)), cluster: cluster("Unknown", ago(time.Hour), ago(time.Minute)),
			want: release{addon: true, wait: 4 * time.Minute},
		},
		"the addon was removed after its cluster": {
			addon: addon(ago(time.Minute)), cluster: cluster("Unknown", ago(time.Hour), ago(timeout)),
			want: release{works: true, wait: 4 * time.Minute},
		},
		"both wait: until the first may go": {
			addon: addon(ago(2 * time.Minute)), cluster: cluster("Unknown", ago(time.Hour), ago(time.Minute)),
			want: release{wait: 3 * time.Minute},
		},
		"both timed out": {
			addon: addon(ago(timeout)), cluster: cluster("Unknown", ago(time.Hour), ago(timeout)),
			want: release{addon: true, works: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := Options{Unreachable: timeout, Job: time.Hour}
			if got := decideRelease(test.addon, test.cluster, l, jobStart{}, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLeftBehindMessageFitsAnEvent(t *testing.T) {
	cluster := strings.Repeat("c", 63)
	refused := metav1.Condition{Type: "Applied", Status: "False", Message: strings.Repeat("no ", 10000)}
	why := whyNotCleanedUp("c1", []workv1.ManifestWork{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "addon-cluster-inventory-pre-delete"},
		Status:     workv1.ManifestWorkStatus{Conditions: []metav1.Condition{refused}},
	}})
	for _, message := range []string{leftBehind(cluster, 5*time.Minute), notCleanedUp(cluster, 5*time.Minute, why)} {
		if len(message) > 1024 {
			t.Errorf("%d bytes, more than an event's note may have", len(message))
		}
		command := "kubectl delete clusterclaims -l app.kubernetes.io/managed-by=cluster-inventory-addon"
		for _, part := range []string{"5m0s", command} {
			if !strings.Contains(message, part) {
				t.Errorf("%q does not say %q", message, part)
			}
		}
	}
}
