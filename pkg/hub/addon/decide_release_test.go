package addon

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
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

	tests := map[string]struct {
		addon   *addonv1beta1.ManagedClusterAddOn
		cluster *clusterv1.ManagedCluster
		want    release
	}{
		"not being removed": {
			addon:   &addonv1beta1.ManagedClusterAddOn{},
			cluster: cluster(metav1.ConditionUnknown, time.Hour),
		},
		"the spoke is there: it cleans up, however long": {
			addon:   deleted(time.Hour),
			cluster: cluster(metav1.ConditionTrue, 2*time.Hour),
		},
		"removed just now from a spoke long gone: it gets the whole timeout": {
			addon: deleted(0), cluster: cluster(metav1.ConditionUnknown, time.Hour), want: release{wait: timeout},
		},
		"the spoke went away during the clean-up: it gets the whole timeout": {
			addon:   deleted(time.Hour),
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
			if got := decide(test.addon, test.cluster, timeout, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
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
		"nobody deletes the cluster": {cluster: cluster("Unknown", ago(time.Hour), nil)},
		"the spoke is there":         {cluster: cluster("True", ago(time.Hour), ago(time.Hour))},
		"deleted just now":           {cluster: cluster("Unknown", ago(time.Hour), ago(0)), want: release{wait: timeout}},
		"at the timeout":             {cluster: cluster("False", ago(time.Hour), ago(timeout)), want: release{works: true}},
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
			if got := decide(test.addon, test.cluster, timeout, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLeftBehindFitsAnEvent(t *testing.T) {
	message := leftBehind(strings.Repeat("c", 63), 5*time.Minute)
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
