package installation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const (
	// editEvery is the interval of the edits, and edited the number of properties that take
	// turns.
	editEvery = 500 * time.Millisecond
	edited    = 10
)

// Of two managers the leader is killed while properties are edited. The other one takes
// over; every edit arrives, none is undone, and nothing is written twice. A leader
// that is stopped hands over at once.
func TestALeaderThatIsKilledIsFollowed(t *testing.T) {
	journeys.Installed(t, "--set", "replicas=2")
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "leader", journeys.Cluster1, journeys.Cluster2)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster2)
	e := newEditor(t)
	e.arrived(ns)
	managersRun(t, 2)
	before := journeys.Settled(t, journeys.AddonResources...)
	seen, firstEdit := record(t, ns), e.edits

	for range edited / 2 {
		e.edit()
	}
	killed := journeys.Holder(t.Context(), t)
	journeys.Kill(t, "hub", journeys.ManagerNS, podOf(killed))
	editsBefore, began := e.edits, time.Now()
	apitest.Within(t, journeys.Eventually, "another manager leads and works", func(ctx context.Context) error {
		e.edit()
		if holder := journeys.Holder(ctx, t); holder == killed || holder == "" {
			return fmt.Errorf("%q leads", holder)
		}
		profile, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		if err != nil {
			return err
		}
		if last := slices.Max(append(valuesOf(profile), 0)); last < editsBefore {
			return fmt.Errorf("of %d edits the profile shows the first %d", e.edits, last+1)
		}
		return nil
	})
	t.Logf("followed after %s", time.Since(began).Round(time.Second))
	for range edited {
		e.edit()
	}
	e.arrived(ns)
	after := journeys.Settled(t, journeys.AddonResources...)
	const claimWrites, profileWrites = "cluster1: PATCH clusterclaims", "hub: PATCH clusterprofiles/status"
	got, changed := journeys.Since(before, after), seen.check(t, journeys.Cluster1)
	if got[profileWrites] == changed+1 {
		changed++ // a request of the killed leader was counted, and ended with its connection
	}
	want := map[string]int{claimWrites: e.edits - firstEdit, profileWrites: changed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes, of which each changed something (-want +got):\n%s", diff)
	}

	managersRun(t, 2)
	handsOver(t)
	e.edit()
	e.arrived(ns)
}

// podOf returns the Pod of a leading manager.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// managersRun waits until that many managers are ready.
func managersRun(t *testing.T, n int) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, fmt.Sprintf("%d managers are ready", n), func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := journeys.Hub(t).List(ctx, pods, client.InNamespace(journeys.ManagerNS), client.MatchingLabels{
			"app.kubernetes.io/component": "manager",
		})
		if err != nil {
			return err
		}
		ready := 0
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && journeys.PodReady(pod) {
				ready++
			}
		}
		if ready != n || len(pods.Items) != n {
			return fmt.Errorf("%d of %d are", ready, len(pods.Items))
		}
		return nil
	})
}

// handsOver deletes the Pod of the leader, and waits until it has released the lease,
// rather than let it expire, and another manager holds it.
func handsOver(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), journeys.Eventually)
	defer cancel()
	leases, err := journeys.Hub(t).Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(journeys.ManagerNS),
		client.MatchingFields{"metadata.name": "cluster-inventory-manager"})
	apitest.Must(t, err)
	defer leases.Stop()
	leader := journeys.Holder(ctx, t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: podOf(leader)}}
	apitest.Must(t, journeys.Hub(t).Delete(ctx, pod))
	released := false
	for event := range leases.ResultChan() {
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			t.Fatalf("watching the lease: %+v", event)
		}
		switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); {
		case holder == "":
			released = true
		case holder == leader:
		case released:
			return
		default:
			t.Fatalf("%s took the lease over, which %s had not given up", holder, leader)
		}
	}
	t.Fatalf("the lease of %s: released: %t, but nobody took it over", leader, released)
}

// editor edits properties of Cluster1, one after the other and again. The value of each is
// the number of the edit.
type editor struct {
	t     *testing.T
	edits int
	pace  *time.Ticker
	last  [edited]int
}

// newEditor creates the properties.
func newEditor(t *testing.T) *editor {
	t.Helper()
	e := &editor{t: t, pace: time.NewTicker(editEvery)}
	t.Cleanup(e.pace.Stop)
	for range edited {
		e.edit()
	}
	return e
}

func property(i int) string { return fmt.Sprintf("edited-%d.example", i) }

func (e *editor) edit() {
	e.t.Helper()
	<-e.pace.C
	i := e.edits % edited
	journeys.Sets(e.t, journeys.Cluster1, property(i), strconv.Itoa(e.edits))
	e.last[i] = e.edits
	e.edits++
}

// arrived waits until the profile shows the last edit of each property.
func (e *editor) arrived(ns string) {
	e.t.Helper()
	for i, last := range e.last {
		journeys.Shows(e.t, ns, journeys.Cluster1, property(i), strconv.Itoa(last))
	}
}

// valuesOf returns the numbers of the edits that a profile shows, by property.
func valuesOf(profile *inventoryv1alpha1.ClusterProfile) []int {
	var values []int
	for i := range edited {
		if found, ok := journeys.PropertyOf(profile, property(i)); ok {
			n, err := strconv.Atoi(found.Value)
			if err != nil {
				n = -1
			}
			values = append(values, n)
		}
	}
	return values
}

// recording holds the versions that the profiles of a namespace have had.
type recording struct {
	namespace string

	mu       sync.Mutex
	versions map[string][]*inventoryv1alpha1.ClusterProfile // by cluster
	other    []string                                       // other events
}

// record watches the profiles of a namespace until the story ends.
func record(t *testing.T, namespace string) *recording {
	t.Helper()
	r := &recording{namespace: namespace, versions: map[string][]*inventoryv1alpha1.ClusterProfile{}}
	list := &inventoryv1alpha1.ClusterProfileList{}
	apitest.Must(t, journeys.Hub(t).List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		r.versions[list.Items[i].Name] = append(r.versions[list.Items[i].Name], &list.Items[i])
	}
	events, err := journeys.Hub(t).Watch(t.Context(), &inventoryv1alpha1.ClusterProfileList{},
		&client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	apitest.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			r.add(event)
		}
	}()
	t.Cleanup(func() { events.Stop(); <-done })
	return r
}

func (r *recording) add(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile)
	if !ok || event.Type != watch.Modified {
		r.other = append(r.other, fmt.Sprintf("%s %T", event.Type, event.Object))
		return
	}
	r.versions[profile.Name] = append(r.versions[profile.Name], profile)
}

// check waits until the recording has the present profiles, checks that only the cluster's
// changed, that each change changed something and that none undid an edit, and returns how
// many there were.
func (r *recording) check(t *testing.T, cluster string) int {
	t.Helper()
	apitest.Within(t, journeys.Soon, "the recording is complete", func(ctx context.Context) error {
		now, err := journeys.ProfileOf(ctx, journeys.Hub(t), r.namespace, cluster)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if last := r.versions[cluster][len(r.versions[cluster])-1]; last.ResourceVersion != now.ResourceVersion {
			return fmt.Errorf("its last version is %s, not %s", last.ResourceVersion, now.ResourceVersion)
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.other) > 0 {
		t.Errorf("the profiles also had: %v", r.other)
	}
	for other, versions := range r.versions {
		if other != cluster && len(versions) > 1 {
			t.Errorf("the profile of %s, which nobody edited, was changed %d times", other, len(versions)-1)
		}
	}
	versions := r.versions[cluster]
	for i := 1; i < len(versions); i++ {
		before, after := valuesOf(versions[i-1]), valuesOf(versions[i])
		if slices.Equal(before, after) {
			t.Errorf("version %s repeats the one before: %v", versions[i].ResourceVersion, after)
		}
		for n := range before {
			if n >= len(after) || after[n] < before[n] {
				t.Errorf("version %s takes back an edit: %v after %v", versions[i].ResourceVersion, after, before)
				break
			}
		}
	}
	return len(versions) - 1
}
