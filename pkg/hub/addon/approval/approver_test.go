package approval

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// accept makes the hub accept a cluster.
func (w *world) accept(cluster *clusterv1.ManagedCluster) {
	w.T.Helper()
	apitest.Edit(w, cluster, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
}

// csr creates the request of a cluster's klusterlet, spoilt if a function is given.
func (w *world) csr(
	cluster string, spoil ...func(*certificatesv1.CertificateSigningRequest),
) *certificatesv1.CertificateSigningRequest {
	w.T.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apitest.Must(w.T, err)
	r := klusterletRequest(cluster)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "addon-" + cluster + "-cluster-inventory-",
			Labels: map[string]string{
				"open-cluster-management.io/cluster-name": cluster,
				"open-cluster-management.io/addon-name":   "cluster-inventory",
			},
			Annotations: map[string]string{"example.com/note": "kept"},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: r.encode(w.T, key), SignerName: r.csr.Spec.SignerName, Usages: r.csr.Spec.Usages,
		},
	}
	for _, change := range spoil {
		change(csr)
	}
	cfg := hub.Config(w.T)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: r.csr.Spec.Username, Groups: []string{"system:masters"}}
	apitest.Must(w.T, apitest.NewClient(w.T, cfg, w.Scheme()).Create(w.T.Context(), csr))
	w.CleanUp(csr)
	return csr
}

func (w *world) isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	w.T.Helper()
	w.MustGet(csr)
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved && c.Status == corev1.ConditionTrue
	})
}

func (w *world) eventuallyApproved(what string, csr *certificatesv1.CertificateSigningRequest) {
	w.T.Helper()
	w.Eventually(what, func() string {
		if !w.isApproved(csr) {
			return "it is not approved"
		}
		return ""
	})
}

func TestFailedApprovalIsRetried(t *testing.T) {
	lost := errors.New("connection lost")
	tests := map[string]struct {
		fault   apitest.Fault
		applied bool
	}{
		"the request changed meanwhile": {fault: apitest.Fault{Status: 409, Reason: "Conflict"}},
		"the API server is overloaded":  {fault: apitest.Fault{Status: 503, Reason: "ServiceUnavailable"}},
		"the approval is forbidden":     {fault: apitest.Fault{Status: 403, Reason: "Forbidden"}},
		"the approval did not arrive":   {fault: apitest.Fault{Err: lost}},
		"the answer did not arrive":     {fault: apitest.Fault{Err: lost, AfterServer: true}, applied: true},
		"the answer was an error anyway": {fault: apitest.Fault{Status: 500, Reason: "InternalError", AfterServer: true},
			applied: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			addon := w.Addon()
			w.accept(w.Cluster(addon.Namespace, metav1.ConditionTrue))
			csr := w.csr(addon.Namespace)
			approver := &Approver{Client: w}
			approve := func() error {
				_, err := approver.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csr)})
				return err
			}

			w.Wire.FailNthWrite(1, test.fault)
			if err := approve(); err == nil {
				t.Error("the failure is not returned")
			}
			if w.isApproved(csr) != test.applied {
				t.Errorf("approved: %t, want %t", !test.applied, test.applied)
			}
			w.Wire.Fail(nil)
			apitest.Must(t, approve())
			if !w.isApproved(csr) {
				t.Errorf("conditions %v", csr.Status.Conditions)
			}
			if csr.Annotations["example.com/note"] != "kept" {
				t.Errorf("annotations %v", csr.Annotations)
			}

			w.Wire.Reset()
			apitest.Must(t, approve())
			if writes := w.Wire.Writes(); len(writes) > 0 {
				t.Errorf("writes although it is approved: %v", writes)
			}
		})
	}
}

func TestRequestIsApprovedOnlyWithoutObjection(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	w.accept(w.Cluster(addon.Namespace, metav1.ConditionTrue))
	refused := w.Cluster(w.Namespace("refused", nil), metav1.ConditionTrue)
	w.MustCreate(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: refused.Name,
		Name: "cluster-inventory"}})
	bare := w.Cluster(w.Namespace("bare", nil), metav1.ConditionTrue)
	w.accept(bare)

	denied := w.csr(addon.Namespace)
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	apitest.Must(t, w.SubResource("approval").Update(t.Context(), denied))
	label := func(cluster string) func(*certificatesv1.CertificateSigningRequest) {
		return func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Labels["open-cluster-management.io/cluster-name"] = cluster
		}
	}
	for name, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"denied":                             denied,
		"of a cluster that is not accepted":  w.csr(refused.Name),
		"of a cluster without the addon":     w.csr(bare.Name),
		"of no cluster of this hub":          w.csr("no-such-cluster"),
		"without a cluster's name":           w.csr(addon.Namespace, label("")),
		"of a klusterlet of another cluster": w.csr(bare.Name, label(addon.Namespace)),
	} {
		t.Run(name, func(t *testing.T) {
			w.Wire.Reset()
			key := client.ObjectKeyFromObject(csr)
			if _, err := (&Approver{Client: w}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Error(err)
			}
			if writes := w.Wire.Writes(); len(writes) > 0 {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

// startApprover runs the approver on a manager's cache and returns a client of it.
func (w *world) startApprover() client.Client {
	w.T.Helper()
	mgr := ocmtest.NewManager(w.T, w.Wire.Tap(hub.Config(w.T)), CacheOptions())
	apitest.Must(w.T, Add(w.T.Context(), mgr))
	apitest.Run(w.T, mgr.Start)
	return mgr.GetClient()
}

func TestRequestsAreApprovedAsSoonAsPossible(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	cluster := w.Cluster(addon.Namespace, metav1.ConditionTrue)
	w.accept(cluster)
	pending := w.csr(addon.Namespace)
	late := w.Cluster(w.Namespace("late", nil), metav1.ConditionTrue)
	tooEarly := w.csr(late.Name)

	cached := w.startApprover()
	w.eventuallyApproved("what was pending at the start is approved", pending)
	w.eventuallyApproved("a new request is approved", w.csr(addon.Namespace))

	others := w.csr(addon.Namespace, func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Labels["open-cluster-management.io/addon-name"] = "another"
	})
	foreign := w.csr(addon.Namespace, func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Spec.SignerName = "example.com/signer"
	})
	w.MustCreate(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: late.Name,
		Name: "cluster-inventory"}})
	w.accept(late)
	w.eventuallyApproved("a request that was there before its cluster was accepted is approved", tooEarly)

	later := w.Cluster(w.Namespace("later", nil), metav1.ConditionTrue)
	w.accept(later)
	waiting := w.csr(later.Name)
	seen := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: waiting.Name}}
	w.Eventually("the cache has the request without an addon", apitest.Succeeds(func() error {
		return cached.Get(t.Context(), client.ObjectKeyFromObject(seen), seen)
	}))
	w.MustCreate(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: later.Name,
		Name: "cluster-inventory"}})
	w.eventuallyApproved("a request that was there before its addon is approved", waiting)

	list := &certificatesv1.CertificateSigningRequestList{}
	apitest.Must(t, cached.List(t.Context(), list))
	for _, csr := range list.Items {
		if csr.Name == others.Name || csr.Name == foreign.Name {
			t.Errorf("cached: %s, labelled %v, of signer %s", csr.Name, csr.Labels, csr.Spec.SignerName)
		}
	}
	if w.isApproved(others) || w.isApproved(foreign) {
		t.Error("a request of another addon or signer was approved")
	}
	if puts := w.Wire.Writes("certificatesigningrequests/approval"); len(puts) != 4 {
		t.Errorf("%d approvals written, want one for each of 4 requests", len(puts))
	}
}

func TestTrimRequest(t *testing.T) {
	type request = certificatesv1.CertificateSigningRequest
	const clusterLabel = "open-cluster-management.io/cluster-name"
	full := func() *request {
		return &request{
			ObjectMeta: metav1.ObjectMeta{
				Name: "r", ResourceVersion: "1", Labels: map[string]string{clusterLabel: "c1", "l": "1"},
				Annotations:   map[string]string{"a": "1"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", maxRequestBytes)}},
			},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: []byte("r"), SignerName: "s", Usages: []certificatesv1.KeyUsage{"client auth"},
				Username: "u", UID: "1", Groups: []string{strings.Repeat("g", maxRequestBytes)},
				Extra: map[string]certificatesv1.ExtraValue{"e": {strings.Repeat("v", maxRequestBytes)}},
			},
			Status: certificatesv1.CertificateSigningRequestStatus{
				Conditions: []certificatesv1.CertificateSigningRequestCondition{{
					Type: certificatesv1.CertificateFailed, Status: "True", Message: "not decided",
				}},
				Certificate: []byte(strings.Repeat("c", maxRequestBytes)),
			},
		}
	}
	whole := full()
	whole.ManagedFields, whole.Status.Certificate = nil, nil
	whole.Spec.UID, whole.Spec.Groups, whole.Spec.Extra = "", nil, nil
	outline := &request{
		ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1", Labels: map[string]string{clusterLabel: "c1"}},
		Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: "s", Username: "u"},
	}
	decided := outline.DeepCopy()
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: "True"},
	}
	much := strings.Repeat("x", maxRequestBytes)
	for name, tc := range map[string]struct {
		change func(*request)
		want   *request
	}{
		"pending, complete except for unread fields": {func(*request) {}, whole},
		"decided, in outline": {func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: "True", Message: much,
			})
		}, decided},
		"of an oversized request":     {func(r *request) { r.Spec.Request = []byte(much) }, outline},
		"with oversized labels":       {func(r *request) { r.Labels["l"] = much }, outline},
		"with oversized annotations":  {func(r *request) { r.Annotations["a"] = much }, outline},
		"with oversized finalizers":   {func(r *request) { r.Finalizers = []string{much} }, outline},
		"with an oversized condition": {func(r *request) { r.Status.Conditions[0].Message = much }, outline},
		"with an oversized usage": {
			func(r *request) { r.Spec.Usages[0] = certificatesv1.KeyUsage(much) }, outline,
		},
		"with an oversized owner": {
			func(r *request) { r.OwnerReferences = []metav1.OwnerReference{{Name: much}} }, outline,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := full()
			tc.change(in)
			got := trimRequest(in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			again := trimRequest(got) // an informer may do so
			if diff := cmp.Diff(tc.want, again); diff != "" {
				t.Errorf("trimmed twice (-want +got):\n%s", diff)
			}
		})
	}
}
