package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// A manager that stands by keeps its caches filled. It must not take over with those of a
// state that the hub has lost.
func TestStandbyLeadsARestoredHub(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.AgentRevision())
	w := ocmtest.New(t, server.Config(t))
	hubtest.Install(w.World, "", hubtest.AllButProgram)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubtest.Namespace, Name: "cluster-inventory-manager",
	}}
	held := coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
		AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
	}
	if w.Find(lease) {
		apitest.Edit(w, lease, func(l *coordinationv1.Lease) { l.Spec = held })
	} else {
		lease.Spec = held
		w.MustCreate(lease)
	}
	set := w.ExclusiveSet("set")
	team := w.Namespace("team", nil)
	w.Bind(team, set.Name)
	before := w.Cluster("before", ocmtest.InSet(set.Name))

	data := server.Snapshot(t)
	lost := w.Cluster("lost", ocmtest.InSet(set.Name))
	filler := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "filler"}}
	w.MustCreate(filler)
	for i := range 500 { // so that the restored hub does not get as far in this test
		apitest.Edit(w, filler, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"n": fmt.Sprint(i)} })
	}
	wire := &apitest.Wire{}
	opts := startOptions(t)
	opts.LeaderElect, opts.LeaderElectNamespace = true, hubtest.Namespace
	// As the administrator: while the API server starts, it may refuse others for want of a
	// role, after which caches list anyway.
	cfg := wire.Tap(server.Config(t))
	apitest.Run(t, func(ctx context.Context) error { return run(ctx, cfg, opts) })
	w.Eventually("it follows certificate requests", func() string {
		if !slices.ContainsFunc(wire.Calls(), func(c apitest.Call) bool {
			return c.IsWatch() && c.Resource == "certificatesigningrequests"
		}) {
			return "there is no watch"
		}
		return ""
	})
	wire.Settle(t, apitest.Patience, time.Second)

	server.Restore(t, data, nil)
	w.Patience = apitest.RestartPatience
	after := w.Cluster("after", ocmtest.InSet(set.Name))
	request := requestCertificate(t, server.Config(t), before.Name)
	apitest.Edit(w, lease, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
	for _, cluster := range []string{before.Name, after.Name} {
		w.Eventually("the profile of cluster "+cluster, func() string {
			if w.Profile(team, cluster) == nil {
				return "there is none"
			}
			return ""
		})
	}
	w.Eventually("the certificate request is approved", func() string {
		w.MustGet(request)
		if len(request.Status.Conditions) == 0 {
			return "it is pending"
		}
		return ""
	})
	if w.Profile(team, lost.Name) != nil {
		t.Error("there is a profile of a cluster that the hub has lost")
	}
}

// A leader notices that the hub was restored before it writes, because what it knows is lost. It ends, and
// the kubelet starts it again.
func TestLeaderOfARestoredHubStartsAgain(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.AgentRevision())
	w := ocmtest.New(t, server.Config(t))
	hubtest.Install(w.World, "", hubtest.AllButProgram)
	set := w.ExclusiveSet("set")
	team := w.Namespace("team", nil)
	w.Bind(team, set.Name)
	before := w.Cluster("before", ocmtest.InSet(set.Name))

	wire := &apitest.Wire{}
	cfg := wire.Tap(server.Config(t))
	var ends, others atomic.Int32
	opts := startOptions(t)
	opts.LeaderElect, opts.LeaderElectNamespace = true, hubtest.Namespace
	apitest.Run(t, func(ctx context.Context) error {
		err := run(ctx, cfg, opts)
		for ; ctx.Err() == nil; err = run(ctx, cfg, opts) {
			if errors.Is(err, errRestored) {
				ends.Add(1)
			} else {
				others.Add(1) // the API server took so long to start that it could not renew the Lease
			}
		}
		return err
	})
	hasProfile := func(cluster string) func() string {
		return func() string {
			if w.Profile(team, cluster) == nil {
				return "there is none"
			}
			return ""
		}
	}
	w.Eventually("the profile of a cluster", hasProfile(before.Name))
	data := server.Snapshot(t)
	w.Patience = apitest.RestartPatience
	lost := w.Cluster("lost", ocmtest.InSet(set.Name))
	w.Eventually("the profile that will be lost", hasProfile(lost.Name))
	if n := ends.Load(); n > 0 {
		t.Errorf("it has started again %d times because the API server has", n)
	}

	wire.Reset()
	server.Restore(t, data, nil)
	after := w.Cluster("after", ocmtest.InSet(set.Name))
	w.Eventually("the profile of a new cluster", hasProfile(after.Name))
	if n := ends.Load(); n != 1 && others.Load() == 0 {
		t.Errorf("it has started again %d times", n)
	}
	for _, call := range wire.Calls() {
		if call.Method == http.MethodPost && call.Resource == "clusterprofiles" && call.Mentions(lost.Name) {
			t.Errorf("a cluster that the hub has lost is published: %v", call)
		}
	}
	if w.Profile(team, lost.Name) != nil {
		t.Error("there is a profile of a cluster that the hub has lost")
	}
}

// requestCertificate creates the request of a cluster's klusterlet for the agent.
func requestCertificate(t *testing.T, cfg *rest.Config, cluster string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apitest.Must(t, err)
	addon := "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory"
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName:   addon + ":agent:cluster-inventory",
			Organization: []string{addon, "system:open-cluster-management:addon:cluster-inventory"},
		},
		DNSNames: []string{"cluster-inventory.addon.open-cluster-management.io"},
	}, key)
	apitest.Must(t, err)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "addon-", Labels: map[string]string{addonLabel: ocmtest.AddonName, clusterLabel: cluster},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
			},
		},
	}
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:open-cluster-management:" + cluster + ":agent-7", Groups: []string{"system:masters"},
	}
	apitest.Must(t, apitest.NewClient(t, cfg, ocmtest.Scheme()).Create(t.Context(), request))
	return request
}
