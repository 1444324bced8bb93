package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/consumers"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// sharedProfile is a profile that another client writes properties to, as well.
type sharedProfile struct {
	*world
	t    *testing.T
	ns   string
	c    *clusterv1.ManagedCluster
	name string // of c, which an edit writes
	wire *apitest.Wire
	cfg  *rest.Config
	stop func()

	server *apitest.Server
}

func newSharedProfile(t *testing.T, server *apitest.Server) *sharedProfile {
	t.Helper()
	w := newWorld(t, server.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set := w.ExclusiveSet("set")
	s := &sharedProfile{world: w, t: t, ns: w.Namespace("team", nil), wire: &apitest.Wire{}, server: server}
	w.Bind(s.ns, set.Name)
	s.c = w.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("x", "0"))
	s.name = s.c.Name
	s.cfg = s.wire.Tap(asManager(t, server, w))
	s.start()
	w.whole(s.ns, s.c.Name)
	return s
}

func (s *sharedProfile) start() { s.stop = startManager(s.t, s.cfg, Options{Guard: allowed}) }

func (s *sharedProfile) claims(claims ...clusterv1.ManagedClusterClaim) {
	s.T.Helper()
	apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claims })
}

func (s *sharedProfile) properties() map[string]string {
	s.T.Helper()
	values := map[string]string{}
	for _, property := range s.Profile(s.ns, s.c.Name).Status.Properties {
		values[property.Name] = property.Value
	}
	return values
}

// shows waits for exactly these properties, name and value by turns.
func (s *sharedProfile) shows(namesAndValues ...string) {
	s.T.Helper()
	want := map[string]string{}
	for i := 0; i < len(namesAndValues); i += 2 {
		want[namesAndValues[i]] = namesAndValues[i+1]
	}
	s.Eventually("the properties are as they should be", func() string { return cmp.Diff(want, s.properties()) })
}

// says waits for an event on the profile.
func (s *sharedProfile) says(reason, text string) {
	s.T.Helper()
	s.Eventually("an event "+reason, func() string {
		list := &eventsv1.EventList{}
		if err := s.List(s.T.Context(), list, client.InNamespace(s.ns)); err != nil {
			return err.Error()
		}
		for _, event := range list.Items {
			if event.Reason == reason && event.Regarding.Kind == "ClusterProfile" && strings.Contains(event.Note, text) {
				return ""
			}
		}
		return fmt.Sprintf("there is none with %q among %d", text, len(list.Items))
	})
}

// apply writes one property as agent-sandbox does, by a forced server-side apply, and returns
// the version that it made.
func (s *sharedProfile) apply(name, value string) (version string, err error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": inventoryv1alpha1.GroupVersion.String(), "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": s.ns, "name": s.name},
		"status":   map[string]any{"properties": []map[string]any{{"name": name, "value": value}}},
	})
	if err != nil {
		return "", err
	}
	profile := s.empty()
	err = s.Status().Patch(s.T.Context(), profile, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner("agent-sandbox"), client.ForceOwnership)
	return profile.ResourceVersion, err
}

// edit writes one property as a client does that reads, changes and updates, and returns the
// version that it made.
func (s *sharedProfile) edit(name, value string) (version string, err error) {
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		profile := s.empty()
		if err := s.Get(s.T.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
			return err
		}
		at := slices.IndexFunc(profile.Status.Properties, func(p inventoryv1alpha1.Property) bool { return p.Name == name })
		if at < 0 {
			profile.Status.Properties = append(profile.Status.Properties, inventoryv1alpha1.Property{Name: name})
			at = len(profile.Status.Properties) - 1
		}
		profile.Status.Properties[at].Value = value
		err := s.Status().Update(s.T.Context(), profile, client.FieldOwner("theirs"))
		version = profile.ResourceVersion
		return err
	})
	return version, err
}

func (s *sharedProfile) empty() *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: s.name}}
}

// versions are those of a profile, as a client that watches it sees them.
type versions struct {
	mu   sync.Mutex
	list []*inventoryv1alpha1.ClusterProfile
}

// follow watches the profile until the test ends.
func (s *sharedProfile) follow() *versions {
	s.T.Helper()
	c, err := client.NewWithWatch(s.server.Config(s.t), client.Options{Scheme: ocmtest.Scheme()})
	apitest.Must(s.t, err)
	watch, err := c.Watch(s.t.Context(), &inventoryv1alpha1.ClusterProfileList{}, &client.ListOptions{
		Namespace: s.ns, Raw: &metav1.ListOptions{ResourceVersion: s.Profile(s.ns, s.c.Name).ResourceVersion},
	})
	apitest.Must(s.t, err)
	s.t.Cleanup(watch.Stop)
	v := &versions{}
	go func() {
		for event := range watch.ResultChan() {
			if profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile); ok {
				v.mu.Lock()
				v.list = append(v.list, profile)
				v.mu.Unlock()
			}
		}
	}()
	return v
}

// until waits until a version has been seen, and returns all up to it.
func (v *versions) until(s *sharedProfile, version string) (seen []*inventoryv1alpha1.ClusterProfile) {
	s.T.Helper()
	s.Eventually("the watch shows version "+version, func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		for n, profile := range v.list {
			if profile.ResourceVersion == version {
				seen = v.list[:n+1]
				return ""
			}
		}
		return fmt.Sprintf("%d versions", len(v.list))
	})
	return seen
}

const (
	// theirEvery is how often another client writes its property.
	theirEvery = 500 * time.Millisecond

	// edits is how often the spoke changes its claim meanwhile, after editEvery each.
	edits     = 8
	editEvery = 2 * time.Second
)

// writing are the ways in which another client may write properties, and how many writes of
// this addon announce, or forget, the name of a property in the presence of such a client.
var writing = map[string]struct {
	hub   *apitest.Server
	write func(*sharedProfile, string, string) (string, error)
	names int
}{
	"list maps, server-side apply":    {applyHub, (*sharedProfile).apply, 0},
	"list maps, read-modify-write":    {editHub, (*sharedProfile).edit, 0},
	"atomic lists, read-modify-write": {editAtomicHub, (*sharedProfile).edit, 1},
}

// Another client writes its own property twice a second while the spoke edits its. No version
// of the profile lacks what either wrote, no consumer breaks, nothing is contested, and the
// manager writes once for each edit.
func TestOtherWritersWhileASpokeEdits(t *testing.T) {
	for name, form := range writing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedProfile(t, form.hub)
			seen := s.follow()
			_, err := form.write(s, "agents.x-k8s.io/last-seen", "0")
			apitest.Must(t, err)
			s.recorded(form.names, `["x"]`)

			writes, done := 1, make(chan struct{})
			var theirs errgroup.Group
			theirs.Go(func() error {
				tick := time.NewTicker(theirEvery)
				defer tick.Stop()
				for ; ; writes++ {
					select {
					case <-done:
						return nil
					case <-tick.C:
					}
					if _, err := form.write(s, "agents.x-k8s.io/last-seen", strconv.Itoa(writes)); err != nil {
						return err
					}
				}
			})
			for n := range edits {
				s.claims(ocmtest.Claim("x", strconv.Itoa(n+1)))
				// The manager would write once for two edits that it sees at the same time.
				s.Eventually("the edit arrives", func() string { return cmp.Diff(strconv.Itoa(n+1), s.properties()["x"]) })
				s.Stays(editEvery, "nothing is contested", func() string {
					if got := s.AddonCondition(s.c.Name, "ProfilesSynced"); got.Reason == "Contested" {
						return got.Message
					}
					return ""
				})
			}
			close(done)
			apitest.Must(t, theirs.Wait())
			s.shows("x", strconv.Itoa(edits), "agents.x-k8s.io/last-seen", strconv.Itoa(writes-1))
			s.synced(s.c.Name)
			list := seen.until(s, s.Profile(s.ns, s.c.Name).ResourceVersion)
			if own := len(list) - writes; own != edits+form.names {
				t.Errorf("%d writes of the manager, want one for each of %d edits and %d for the list of the properties",
					own, edits, form.names)
			}
			last := map[string]int{"agents.x-k8s.io/last-seen": 0, "x": 0}
			for i, profile := range list {
				if i > 0 {
					for _, problem := range consumers.Validate(list[i-1], profile, time.Now()) {
						t.Errorf("version %s breaks a consumer: %s", profile.ResourceVersion, problem)
					}
				}
				values := map[string]string{}
				for _, property := range profile.Status.Properties {
					values[property.Name] = property.Value
				}
				for name := range last {
					value, err := strconv.Atoi(values[name])
					if err != nil || value < last[name] {
						t.Errorf("after %d, %s is %q in version %s", last[name], name, values[name], profile.ResourceVersion)
					}
					last[name] = value
				}
			}
		})
	}
}

// recorded waits until the annotation lists the properties, if it must.
func (s *sharedProfile) recorded(names int, want string) {
	s.T.Helper()
	if names == 0 {
		want = ""
	}
	s.Eventually("the properties are listed where that is needed", func() string {
		return cmp.Diff(want, s.Profile(s.ns, s.c.Name).Annotations[propertiesList])
	})
}

// What is another client's is recognized after a restart, and so is what is ours and has lost
// its claim.
func TestTheAuthorsOfPropertiesSurviveARestart(t *testing.T) {
	for name, form := range writing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedProfile(t, form.hub)
			write := func(name, value string) {
				t.Helper()
				_, err := form.write(s, name, value)
				apitest.Must(t, err)
			}
			t.Log("no other client has written, so nothing is listed")
			s.recorded(0, "")
			s.stop()
			s.claims(ocmtest.Claim("w", "0"))
			s.wire.Reset()
			s.start()
			s.shows("w", "0")
			s.synced(s.c.Name)
			if diff := cmp.Diff([]string{patchStatus}, s.wire.Sent("clusterprofiles", "clusterprofiles/status")); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}

			t.Log("another client writes while no manager runs")
			s.stop()
			write("agents.x-k8s.io/last-seen", "1")
			s.start()
			s.recorded(form.names, `["w"]`)
			s.shows("w", "0", "agents.x-k8s.io/last-seen", "1")

			t.Log("a claim goes and another comes while no manager runs and the other client writes")
			s.stop()
			s.claims(ocmtest.Claim("y", "1"))
			write("agents.x-k8s.io/last-seen", "2")
			s.wire.Reset()
			s.start()
			s.shows("y", "1", "agents.x-k8s.io/last-seen", "2")
			s.recorded(form.names, `["y"]`)
			s.synced(s.c.Name)
			if writes := s.wire.Writes("clusterprofiles", "clusterprofiles/status"); len(writes) != 1+2*form.names {
				t.Errorf("one edit is %v", writes)
			}

			t.Log("a claim of their property's name wins, which is said")
			s.claims(ocmtest.Claim("y", "1"), ocmtest.Claim("agents.x-k8s.io/last-seen", "ours"))
			s.shows("y", "1", "agents.x-k8s.io/last-seen", "ours")
			s.says("PropertiesOverruled", `"agents.x-k8s.io/last-seen"`)
			s.claims(ocmtest.Claim("y", "1"))
			s.shows("y", "1")
			s.synced(s.c.Name)

			t.Log("they overwrite what is ours, which is repaired")
			write("y", "theirs")
			s.shows("y", "1")
			s.synced(s.c.Name)
		})
	}
}

// The API server records the last writer of an atomic list as the author of all its entries
// when the CRD gets list maps.
func TestOthersPropertiesStayWhenTheCRDIsSwapped(t *testing.T) {
	s := newSharedProfile(t, apitest.Start(t, apitest.Hub(), apitest.AtomicClusterProfile()))
	_, err := s.edit("agents.x-k8s.io/last-seen", "1")
	apitest.Must(t, err)
	s.recorded(1, `["x"]`)
	s.claims(ocmtest.Claim("x", "1"))
	s.shows("x", "1", "agents.x-k8s.io/last-seen", "1") // the manager has written the list
	for n, form := range []apitest.CRDs{
		apitest.ClusterProfile(), apitest.AtomicClusterProfile(), apitest.ClusterProfileInTwoVersions(),
	} {
		s.server.Install(t, form)
		name := "claim-" + strconv.Itoa(n)
		s.claims(ocmtest.Claim(name, "1"))
		s.shows(name, "1", "agents.x-k8s.io/last-seen", "1")
		if n == 1 {
			s.recorded(1, `["claim-1"]`) // the manager learns from its first write that lists are atomic now
		}
		s.stop()
		s.claims()
		s.start()
		s.shows("agents.x-k8s.io/last-seen", "1")
		s.claims(ocmtest.Claim("x", strconv.Itoa(n)))
		s.shows("x", strconv.Itoa(n), "agents.x-k8s.io/last-seen", "1")
	}
	s.synced(s.c.Name)
}

// A server-side apply replaces an atomic list, so this writer and the manager undo each
// other's writes. The manager does so at a bounded rate and says so.
func TestServerSideApplyOfAnAtomicListCostsABoundedNumberOfWrites(t *testing.T) {
	s := newSharedProfile(t, editAtomicHub)
	// The first repair also records which properties are this addon's. Until it has succeeded, refused
	// writes count as attempts to publish a property for the first time, which are not limited.
	_, err := s.apply("agents.x-k8s.io/last-seen", "first")
	apitest.Must(t, err)
	s.shows("x", "0", "agents.x-k8s.io/last-seen", "first")
	s.wire.Reset()
	began := time.Now()
	// Rounds overlap, so the last one to be written is not always the last one to begin.
	var mu sync.Mutex
	latest, value := uint64(0), ""
	rounds := apitest.Hostile(t, func(n int) error {
		version, err := s.apply("agents.x-k8s.io/last-seen", strconv.Itoa(n))
		if err != nil {
			return err
		}
		made, err := strconv.ParseUint(version, 10, 64)
		mu.Lock()
		defer mu.Unlock()
		if made > latest {
			latest, value = made, strconv.Itoa(n)
		}
		return err
	},
		func() bool { return s.AddonCondition(s.c.Name, "ProfilesSynced").Reason == "Contested" })
	s.says("ProfilesWithheld", "another client keeps changing")
	repairs := kube.RepairsAtOnce + int(time.Since(began)/kube.RepairEvery) + 1
	writes := len(s.wire.Writes("clusterprofiles", "clusterprofiles/status"))
	t.Logf("%d applies, %d own writes", rounds, writes)
	if writes == 0 || writes > 2*repairs {
		t.Errorf("%d writes, want at most two for each of %d repairs", writes, repairs)
	}
	s.shows("x", "0", "agents.x-k8s.io/last-seen", value)
}

func TestOthersMayWriteManyProperties(t *testing.T) {
	for name, hub := range map[string]*apitest.Server{"list maps": editHub, "atomic lists": editAtomicHub} {
		t.Run(name, func(t *testing.T) {
			s := newSharedProfile(t, hub)
			want := []string{"x", "new"}
			apitest.EditStatus(s, s.Profile(s.ns, s.c.Name), func(p *inventoryv1alpha1.ClusterProfile) {
				for i := range 1000 {
					name := fmt.Sprintf("theirs-%d.example", i)
					p.Status.Properties = append(p.Status.Properties, inventoryv1alpha1.Property{Name: name, Value: "1"})
					want = append(want, name, "1")
				}
			})
			names := 1
			if name == "list maps" {
				names = 0
			}
			s.recorded(names, `["x"]`)
			s.claims(ocmtest.Claim("x", "seen")) // by a manager whose cache shows the other client's write
			want[1] = "seen"
			s.shows(want...)
			s.synced(s.c.Name)
			s.wire.Reset()
			s.claims(ocmtest.Claim("x", "new"))
			want[1] = "new"
			s.shows(want...)
			s.synced(s.c.Name)
			if sent := s.wire.Sent("clusterprofiles", "clusterprofiles/status"); len(sent) != 1 {
				t.Errorf("one edit is %v", sent)
			}
		})
	}
}

// Without managed fields, the manager lists its properties itself.
func TestManagedFieldsAreStripped(t *testing.T) {
	s := newSharedProfile(t, applyHub)
	_, err := s.apply("agents.x-k8s.io/last-seen", "1")
	apitest.Must(t, err)
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
	apitest.Must(t, s.Patch(t.Context(), s.empty(), strip))
	s.Eventually("the properties are listed", func() string {
		return cmp.Diff(`["x"]`, s.Profile(s.ns, s.c.Name).Annotations[propertiesList])
	})
	s.stop()
	s.claims()
	s.start()
	s.shows("agents.x-k8s.io/last-seen", "1")
	s.Eventually("the list is gone", func() string {
		return cmp.Diff("", s.Profile(s.ns, s.c.Name).Annotations[propertiesList])
	})
}
