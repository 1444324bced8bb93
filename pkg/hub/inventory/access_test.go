package inventory

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// givenAccess says of every cluster what the test wants.
type givenAccess struct{ decision access.Decision }

func (g *givenAccess) Of(string) access.Decision         { return g.decision }
func (g *givenAccess) Subscribe(func(cluster string))    {}
func (g *givenAccess) WaitForSync(context.Context) error { return nil }

func TestAccessProvidersAreMaintainedWithTheRest(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		given := &givenAccess{}
		s.r.opts.Access = given
		publish := func(proxy, direct *inventoryv1alpha1.AccessProvider) {
			given.decision = access.Decision{Proxy: access.ProviderState{Known: true, Provider: proxy},
				Direct: access.ProviderState{Known: true, Provider: direct}}
		}
		has := func(want ...inventoryv1alpha1.AccessProvider) {
			t.Helper()
			if diff := cmp.Diff(want, s.mine().Status.AccessProviders, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("access providers (-want +got):\n%s", diff)
			}
			s.settled()
		}
		proxy, renewed := throughProxy([]byte("CA"), s.c.Name), throughProxy([]byte("CA2"), s.c.Name)
		direct := providerOf("direct", "https://c", []byte("CA"), s.c.Name)
		theirs := inventoryv1alpha1.AccessProvider{Name: "theirs", Cluster: clientcmdv1.Cluster{
			Server: "https://x", TLSServerName: "y", InsecureSkipTLSVerify: true,
			CertificateAuthority: "/file", ProxyURL: "http://p", DisableCompression: true,
			Extensions: []clientcmdv1.NamedExtension{{Name: "z",
				Extension: runtime.RawExtension{Raw: []byte(`{"a":{"b":[1,"2"]}}`)}}},
		}}
		others := inventoryv1alpha1.AccessProvider{Name: "open-cluster-management",
			Cluster: clientcmdv1.Cluster{Server: "https://old"}}

		publish(&proxy, nil)
		s.mustStep(post, patchStatus)
		has(proxy)

		apitest.EditStatus(s, s.mine(), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{theirs, proxy}
			p.Status.CredentialProviders = []inventoryv1alpha1.AccessProvider{others}
		})
		s.mustStep(patchStatus)
		has(proxy, theirs)

		publish(&renewed, &direct)
		s.mustStep(patchStatus)
		has(renewed, direct, theirs)

		given.decision = access.Decision{Problems: []string{"Nobody knows."}}
		s.mustStep()
		has(renewed, direct, theirs)
		if got, _ := s.r.outcomes.Get(s.pair); !cmp.Equal(got.Access, []string{"Nobody knows."}) {
			t.Errorf("the outcome says %q", got.Access)
		}

		publish(nil, nil)
		s.mustStep(patchStatus)
		has(theirs)
		if diff := cmp.Diff([]inventoryv1alpha1.AccessProvider{others}, s.mine().Status.CredentialProviders); diff != "" {
			t.Errorf("deprecated credential providers (-want +got):\n%s", diff)
		}
	})
}

// OCM's own controller maintains the profile, except for its access providers. The manager
// maintains those, and nothing else.
func TestAccessProvidersAreMaintainedInOCMsProfile(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		given := &givenAccess{}
		s.r.opts.Access = given
		allowed := true
		s.r.opts.Guard = func(context.Context) (profiles.Verdict, error) {
			return profiles.Verdict{Reason: "UpstreamGateOn", Access: allowed}, nil
		}
		says := func(provider *inventoryv1alpha1.AccessProvider) {
			given.decision = access.Decision{Proxy: access.ProviderState{Known: true, Provider: provider}}
		}
		proxy := throughProxy([]byte("CA"), s.c.Name)
		says(&proxy)
		s.settled() // it makes no profile

		planted := s.plant("open-cluster-management")
		s.mustStep(patchStatus)
		want := planted.DeepCopy()
		want.Status.AccessProviders = append([]inventoryv1alpha1.AccessProvider{proxy}, planted.Status.AccessProviders...)
		if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
			t.Errorf("profile (-want +got):\n%s", diff)
		}
		s.settled()
		if _, known := s.r.outcomes.Get(s.pair); known {
			t.Error("the pair has an outcome")
		}

		allowed = false // as when it is not known whose the profile is
		says(nil)
		s.settled()
		allowed = true
		withdraw(s) // the cluster is not published there any more, which OCM's controller sees to
		s.settled()
		s.bindingSays(ocmtest.Condition("Bound", "True", "R", ""))
		s.mustStep(patchStatus)
		if diff := cmp.Diff(planted, s.mine(), sameProfile); diff != "" {
			t.Errorf("profile without a way in (-want +got):\n%s", diff)
		}
	})
}

// Addons disappear with their API: that is not a decision about cluster-proxy.
func TestWithoutTheAddonsAPIAccessStays(t *testing.T) {
	s := newStepper(t, mapHub)
	proxy := throughProxy([]byte("CA"), s.c.Name)
	given := &givenAccess{access.Decision{Proxy: access.ProviderState{Known: true, Provider: &proxy}}}
	s.r.opts.Access = given
	s.mustStep(post, patchStatus)
	s.settled()
	given.decision.Proxy.Provider = nil
	s.cache.going = "managedclusteraddons.addon.open-cluster-management.io"
	s.mustStep()
	s.cache.going = ""
	s.mustStep(patchStatus)
}

// A client that writes between our read and our write loses nothing.
func TestConcurrentlyAddedEntryStays(t *testing.T) {
	s := newStepper(t, mapHub)
	proxy := throughProxy([]byte("CA"), s.c.Name)
	theirs := inventoryv1alpha1.AccessProvider{Name: "theirs", Cluster: clientcmdv1.Cluster{Server: "https://x"}}
	s.mustStep(post, patchStatus)
	s.settled()
	before := s.mine()
	s.cache.stale = func() (*inventoryv1alpha1.ClusterProfile, bool) { return before, true }
	apitest.EditStatus(s, s.mine(), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{theirs}
	})
	s.r.opts.Access = &givenAccess{access.Decision{Proxy: access.ProviderState{Known: true, Provider: &proxy},
		Direct: access.ProviderState{Known: true}}}
	if _, err := s.step(); err == nil {
		t.Error("what was read before another client wrote was written")
	}
	s.cache.stale = nil
	s.mustStep(patchStatus)
	if diff := cmp.Diff([]inventoryv1alpha1.AccessProvider{proxy, theirs}, s.mine().Status.AccessProviders); diff != "" {
		t.Errorf("access providers (-want +got):\n%s", diff)
	}
}
