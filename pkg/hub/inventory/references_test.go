package inventory

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// noted records what it is told, and refers to one profile or does not.
type noted struct {
	refers, isUnknown bool

	may  func() selection.Answer
	said []selection.Answer
}

func (n *noted) Subscribe(func(types.NamespacedName)) {}

func (n *noted) Refer(context.Context, types.NamespacedName) selection.Answer {
	switch {
	case n.isUnknown:
		return selection.Unknown
	case n.refers:
		return selection.Yes
	default:
		return selection.No
	}
}

func newReferred(t *testing.T) (*stepper, *noted) {
	s, refs := newStepper(t, mapHub), &noted{}
	s.r.opts.References = refs
	refs.may = func() selection.Answer { return s.rule.Referable(s.pair) }
	refs.said = []selection.Answer{selection.Unknown}
	s.rule.SubscribeReferences(func(types.NamespacedName) { refs.said = append(refs.said, refs.may()) })
	return s, refs
}

// heard compares whether there may be references before, during and after this step, without
// repetitions.
func (n *noted) heard(t *testing.T, want ...selection.Answer) {
	t.Helper()
	now := n.may()
	if diff := cmp.Diff(want, slices.Compact(append(n.said, now))); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	n.said = []selection.Answer{now}
}

func TestCompleteProfileMayBeReferredTo(t *testing.T) {
	s, refs := newReferred(t)
	s.mustStep(post, patchStatus)
	refs.heard(t, selection.Unknown, selection.Yes)
	refs.refers = true
	s.settled()
	refs.heard(t, selection.Yes)
	s.guard.blocked.Store(true)
	s.settled()
	refs.heard(t, selection.Yes, selection.Unknown)
}

func TestProfileWithoutAccessIsIncomplete(t *testing.T) {
	s, refs := newReferred(t)
	given := &givenAccess{access.Decision{Missing: []string{"open-cluster-management"}}}
	s.r.opts.Access = given
	s.mustStep(post, patchStatus)
	refs.heard(t, selection.Unknown)
	proxy := throughProxy([]byte("CA"), s.c.Name)
	given.decision = access.Decision{Proxy: access.ProviderState{Known: true, Provider: &proxy}}
	s.mustStep(patchStatus)
	refs.heard(t, selection.Unknown, selection.Yes)
	// For a while it is unknown whether there should be one: the entry stays.
	given.decision = access.Decision{Missing: []string{"open-cluster-management"}}
	s.settled()
	refs.heard(t, selection.Yes)
}

func TestAProfileWaitsForItsReferences(t *testing.T) {
	for name, released := range map[string]bool{"they go": true, "they do not": false} {
		t.Run(name, func(t *testing.T) {
			s, refs := newReferred(t)
			s.mustStep(post, patchStatus)
			refs.heard(t, selection.Unknown, selection.Yes)
			refs.refers = true
			s.MustDelete(ocmtest.Addon(s.c.Name))
			for i, want := range [][]selection.Answer{{selection.Yes, selection.No}, {selection.No}} {
				left := 3*time.Second - time.Duration(i)*time.Second
				if result := s.mustStep(); result != (reconcile.Result{RequeueAfter: left}) {
					t.Fatalf("result %+v", result)
				}
				refs.heard(t, want...)
				s.later(time.Second)
			}
			if released {
				refs.refers = false
			} else {
				s.later(time.Second)
			}
			s.mustStep(del)
			refs.heard(t, selection.No)
		})
	}
}

// A wait that ended otherwise does not count for the next.
func TestAProfileThatIsWantedAgainStartsANewWait(t *testing.T) {
	s, refs := newReferred(t)
	s.mustStep(post, patchStatus)
	refs.refers = true
	s.MustDelete(ocmtest.Addon(s.c.Name))
	s.mustStep()
	s.Enable(s.c.Name)
	s.later(time.Minute)
	s.settled()
	s.MustDelete(ocmtest.Addon(s.c.Name))
	if result := s.mustStep(); result.RequeueAfter == 0 {
		t.Error("it does not wait")
	}
}

func TestReferencesToMissingProfiles(t *testing.T) {
	t.Run("the profile is gone, and must be", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.MustDelete(ocmtest.Addon(s.c.Name))
		s.settled()
		refs.heard(t, selection.Unknown, selection.No)
		refs.refers = false
		s.settled()
		refs.heard(t, selection.No, selection.Unknown)
	})
	t.Run("unless a CRD may have taken it, or what it rests on", func(t *testing.T) {
		for _, crd := range []string{
			"managedclusteraddons.addon.open-cluster-management.io", "clusterprofiles.multicluster.x-k8s.io",
		} {
			s, refs := newReferred(t)
			refs.refers = true
			s.MustDelete(ocmtest.Addon(s.c.Name))
			s.cache.missing = crd
			s.settled()
			refs.heard(t, selection.Unknown)
		}
	})
	t.Run("unless this addon does not maintain profiles", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.guard.blocked.Store(true)
		s.MustDelete(ocmtest.Addon(s.c.Name))
		s.settled()
		refs.heard(t, selection.Unknown)
	})
	t.Run("it is put back", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.mustStep(post, patchStatus)
		refs.heard(t, selection.Unknown, selection.Yes)
	})
	t.Run("it cannot be put back for half a minute", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.wire.Fail(func(c apitest.Call) apitest.Fault {
			if c.Method == http.MethodPost {
				return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "quota"}
			}
			return apitest.Fault{}
		})
		for _, want := range [][]selection.Answer{
			{selection.Unknown}, {selection.Unknown}, {selection.Unknown, selection.No}, {selection.No},
		} {
			if _, err := s.step(); err == nil {
				t.Fatal("it was created")
			}
			refs.heard(t, want...)
			s.later(15 * time.Second)
		}
	})
	t.Run("another manager's is in its place", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.CleanUp(s.plant("another"))
		s.settled()
		refs.heard(t, selection.Unknown, selection.No)
	})
	t.Run("another client deletes it, and its finalizers hold it", func(t *testing.T) {
		s, refs := newReferred(t)
		s.mustStep(post, patchStatus)
		s.MustMerge(s.mine(), `{"metadata":{"finalizers":["example.com/hold"]}}`)
		s.MustDelete(s.mine())
		s.CleanUp(s.mine())
		refs.heard(t, selection.Unknown, selection.Yes)
		refs.refers = true
		s.settled()
		refs.heard(t, selection.Yes, selection.No)
	})
	t.Run("ours without the mark is left alone, and with it what refers to it", func(t *testing.T) {
		s, refs := newReferred(t)
		refs.refers = true
		s.CleanUp(s.plant("open-cluster-management"))
		s.MustDelete(ocmtest.Addon(s.c.Name))
		s.settled()
		refs.heard(t, selection.Unknown)
	})
}

// A profile without its status is not complete, though it exists.
func TestAProfileCreatedHalfwayMayNotBeReferredTo(t *testing.T) {
	s, refs := newReferred(t)
	s.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.Resource == "clusterprofiles/status" {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a webhook says no"}
		}
		return apitest.Fault{}
	})
	for range 3 {
		if _, err := s.step(); err == nil {
			t.Fatal("its status was written")
		}
		refs.heard(t, selection.Unknown)
	}
	s.wire.Fail(nil)
	s.mustStep(patchStatus)
	refs.heard(t, selection.Unknown, selection.Yes)
}

// TestAnAdoptedProfileIsReferredToOnce: the cache shows the mark after it was recorded that there may be
// references.
func TestAnAdoptedProfileIsReferredToOnce(t *testing.T) {
	s, refs := newReferred(t)
	s.CleanUp(s.plant("open-cluster-management"))
	s.mustStep(patchMain, patchStatus)
	refs.heard(t, selection.Unknown, selection.Yes)
	s.settled()
	refs.heard(t, selection.Yes)
}

// TestWhatRefersToAProfileIsAskedAgainSoon: the PlacementDecisions are known a second or two after a start.
func TestWhatRefersToAProfileIsAskedAgainSoon(t *testing.T) {
	s, refs := newReferred(t)
	s.mustStep(post, patchStatus)
	refs.isUnknown = true
	s.MustDelete(ocmtest.Addon(s.c.Name))
	if result := s.mustStep(); result != (reconcile.Result{RequeueAfter: time.Second}) {
		t.Fatalf("result %+v", result)
	}
	refs.isUnknown = false
	s.later(time.Second)
	s.mustStep(del)
}

func TestMayBeReferredTo(t *testing.T) {
	profile, unmarked := ocmtest.OurProfile("ns", "c"), ocmtest.OurProfile("ns", "c")
	delete(unmarked.Labels, "app.kubernetes.io/managed-by")
	others := ocmtest.ForeignProfile("ns", "c")
	const orphaned, complete = "referred to, but not there", "not up to date, and was complete before"
	failed := errors.New("failed")
	tests := map[string]struct {
		answer  selection.Answer
		profile *inventoryv1alpha1.ClusterProfile
		taken   taken
		want    selection.Answer
	}{
		"created":                    {selection.Yes, profile, taken{next: profiles.Create}, selection.Yes},
		"created without its status": {selection.Yes, profile, taken{next: profiles.Create, err: failed}, selection.Unknown},
		"not created":                {selection.Yes, nil, taken{next: profiles.Create, err: failed}, selection.Unknown},
		"up to date":                 {selection.Yes, profile, taken{profiles.Update, profile, nil, nil}, selection.Yes},
		complete:                     {selection.Yes, profile, taken{profiles.Update, profile, nil, failed}, selection.Yes},
		"not up to date":             {selection.Yes, profile, taken{profiles.Update, profile, nil, failed}, selection.Unknown},
		"adopted":                    {selection.Yes, profile, taken{profiles.Update, unmarked, nil, nil}, selection.Yes},
		"adopted halfway":            {selection.Yes, profile, taken{profiles.Update, unmarked, nil, failed}, selection.Unknown},
		"kept for now":               {selection.Unknown, profile, taken{profiles.Update, profile, nil, nil}, selection.Unknown},
		"deleted":                    {selection.No, profile, taken{profiles.Remove, profile, nil, nil}, selection.No},
		orphaned:                     {selection.No, nil, taken{next: profiles.Leave}, selection.No},
		"not there":                  {selection.No, nil, taken{next: profiles.Leave}, selection.Unknown},
		"another manager's":          {selection.Yes, others, taken{next: profiles.Leave}, selection.No},
		"another's, gate on":         {selection.Yes, others, taken{next: profiles.Refrain}, selection.Unknown},
		"complete, gate on":          {selection.Yes, profile, taken{next: profiles.UpdateAccess}, selection.Unknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := profiles.Observed{Observation: selection.Observation{Profile: test.profile}}
			o.Selected.Answer, o.Orphaned = test.answer, name == orphaned
			before := selection.Unknown
			if name == complete {
				before = selection.Yes
			}
			if got := mayBeReferredTo(o, test.taken, before); got != test.want {
				t.Errorf("answer %d, want %d", got, test.want)
			}
		})
	}
}

func TestIsWhole(t *testing.T) {
	profile := func(providers ...string) *inventoryv1alpha1.ClusterProfile {
		p := ocmtest.OurProfile("ns", "c")
		for _, name := range providers {
			p.Status.AccessProviders = append(p.Status.AccessProviders, inventoryv1alpha1.AccessProvider{Name: name})
		}
		return p
	}
	going, unmarked := profile(), profile()
	going.DeletionTimestamp = &metav1.Time{}
	delete(unmarked.Labels, "app.kubernetes.io/managed-by")
	tests := map[string]struct {
		profile *inventoryv1alpha1.ClusterProfile
		missing []string
		want    bool
	}{
		"no access is expected":      {profile: profile(), want: true},
		"access is missing":          {profile: profile("other"), missing: []string{"direct"}},
		"access is there meanwhile":  {profile: profile("other", "direct"), missing: []string{"direct"}, want: true},
		"there is none":              {},
		"it is going":                {profile: going},
		"it is not this addon's yet": {profile: unmarked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := profiles.Observed{Observation: selection.Observation{Profile: test.profile, Cluster: &clusterv1.ManagedCluster{}}}
			o.Access.Missing = test.missing
			if got := profiles.IsWhole(o); got != test.want {
				t.Errorf("whole: %t", got)
			}
		})
	}
}
