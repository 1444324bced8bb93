package hub

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	addonLabel   = "open-cluster-management.io/addon-name"
	clusterLabel = "open-cluster-management.io/cluster-name"
	publishLabel = "inventory.open-cluster-management.io/publish"
)

// filled is metadata with as much in it as the API server accepts.
func filled(name string, labels map[string]string) metav1.ObjectMeta {
	much := strings.Repeat("x", 250<<10)
	object := metav1.ObjectMeta{
		Namespace: "tenant", Name: name, UID: "u", ResourceVersion: "1",
		Labels:        maps.Clone(labels),
		Annotations:   map[string]string{"example.com/flood": much},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: much}},
	}
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	for n := range 1000 {
		object.Labels[fmt.Sprintf("example.com/flood-%d", n)] = strings.Repeat("x", 63)
		object.Finalizers = append(object.Finalizers, fmt.Sprintf("example.com/flood-%d", n))
		object.OwnerReferences = append(object.OwnerReferences,
			metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("x", 253), UID: "o"})
	}
	return object
}

// floods are objects of the kinds that the manager caches, as large as a user who is no
// administrator of the hub can make them, by the thousands.
func floods() []client.Object {
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: filled("request", map[string]string{
		addonLabel: ocmtest.AddonName, clusterLabel: "cluster1",
	})}
	request.Spec.Request = make([]byte, 900<<10)
	placement := &clusterv1beta1.Placement{ObjectMeta: filled("placement", map[string]string{publishLabel: "true"})}
	placement.Spec.Tolerations = make([]clusterv1beta1.Toleration, 1000)
	slice := map[string]string{"cluster.open-cluster-management.io/placement": "placement"}
	namespace, definition := kube.Partial(kube.NamespaceKind), kube.Partial(kube.CRDKind)
	namespace.ObjectMeta, definition.ObjectMeta = filled("namespace", nil), filled("crd", nil)
	foreign := ocmtest.OurProfile("tenant", "foreign")
	foreign.ObjectMeta = filled("foreign", foreign.Labels)
	foreign.Spec.ClusterManager.Name = "somebody-else"
	foreign.Status.Properties = make([]inventoryv1alpha1.Property, 1000)
	return []client.Object{
		request, placement, namespace, definition, foreign,
		&clusterv1beta1.PlacementDecision{ObjectMeta: filled("slice", slice)},
		&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: filled("set", map[string]string{publishLabel: "true"})},
		&clusterv1beta2.ManagedClusterSet{ObjectMeta: filled("set", nil)},
		&inventoryv1alpha1.PlacementDecision{
			ObjectMeta: filled("decision", nil), Decisions: make([]inventoryv1alpha1.ClusterDecision, 100),
		},
	}
}

// fewOrTrusted are kinds that only administrators can flood, and why.
var fewOrTrusted = map[string]string{
	"ClusterRole":            "one, by name",
	"ClusterManagementAddOn": "one, by name",
	"ManagedClusterAddOn":    "one of each cluster, whose conditions the framework writes back from the cache",
	"ManagedCluster":         "one of each cluster, whose content has limits (package inventory)",
}

// keptOfOne is what a cache may keep of one such object, in bytes of JSON: more than a
// thousandth of a flood, and so little that thousands fit.
const keptOfOne = 4 << 10

func TestCachesKeepLittleOfWhatOthersWrite(t *testing.T) {
	options := cacheOptions(newOptions())
	kindOf := func(object client.Object) string {
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			return partial.Kind
		}
		return reflect.TypeOf(object).Elem().Name()
	}
	transformOf := func(object client.Object) (func(any) (any, error), bool) {
		for kind, byObject := range options.ByObject {
			// Namespaces are read as metadata, but configured by their type.
			sameType := reflect.TypeOf(kind) == reflect.TypeOf(object) || kindOf(object) == "Namespace"
			if sameType && kindOf(kind) == kindOf(object) {
				return byObject.Transform, true
			}
		}
		return options.DefaultTransform, false
	}
	covered := map[string]bool{}
	for _, object := range floods() {
		name := kindOf(object) + " " + object.GetName()
		transform, configured := transformOf(object)
		if configured {
			covered[kindOf(object)] = true
		}
		if before := sizeOf(t, object); before < 250<<10 {
			t.Errorf("%s: %d bytes are no flood", name, before)
		}
		kept, err := transform(object)
		apitest.Must(t, err)
		if after := sizeOf(t, kept); after > keptOfOne {
			t.Errorf("%s: %d bytes are kept: %.300s...", name, after, kept)
		}
	}
	for kind := range options.ByObject {
		if name := kindOf(kind); !covered[name] && fewOrTrusted[name] == "" {
			t.Errorf("nothing says what a flood of %s costs", name)
		}
	}
}

func sizeOf(t testing.TB, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	apitest.Must(t, err)
	return len(text)
}

// largeRequest is a certificate request that the API server accepts, of about so many bytes
// with its encoding.
func largeRequest(t testing.TB, bytes int) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apitest.Must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{ExtraExtensions: []pkix.Extension{
		{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: make([]byte, bytes*3/4)},
	}}, key)
	apitest.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// floodRequest is a request that a spoke makes to fill the manager's memory.
func floodRequest(name, cluster string, request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			addonLabel: ocmtest.AddonName, clusterLabel: cluster,
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

// TestFloodsLeaveTheCacheSmall reads certificate requests of the sizes of a flood from a real
// API server, as one that streams lists and as one that does not.
func TestFloodsLeaveTheCacheSmall(t *testing.T) {
	const many = 2*kube.LargeObjectsPerPage - 10 // two pages
	h := ocmtest.New(t, hub.Config(t))
	request := largeRequest(t, 900<<10)
	sent := 0
	for n := range many {
		csr := floodRequest(fmt.Sprintf("flood-%d", n), "cluster1", request)
		sent += len(csr.Spec.Request)
		h.MustCreate(csr)
		h.CleanUp(csr)
	}
	for name, streams := range map[string]bool{"streamed": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streams)
			before := liveHeap()
			wire := &apitest.Wire{}
			mgr, err := newManager(t.Context(), wire.Tap(hub.Config(t)), startOptions(t))
			apitest.Must(t, err)
			apitest.RunCache(t, mgr.GetCache(), &certificatesv1.CertificateSigningRequest{})
			list := &certificatesv1.CertificateSigningRequestList{}
			apitest.Must(t, mgr.GetCache().List(t.Context(), list, kube.Uncopied))
			if len(list.Items) != many {
				t.Errorf("%d are cached, want %d", len(list.Items), many)
			}
			if size := sizeOf(t, list); size > many*keptOfOne {
				t.Errorf("%d bytes are cached", size)
			}
			if grown := liveHeap() - before; grown > int64(sent/4) {
				t.Errorf("the heap has grown by %d bytes for a flood of %d", grown, sent)
			}
			checkHowItReads(t, wire, streams)
		})
	}
}

// checkHowItReads checks that no request gets a whole flood at once.
func checkHowItReads(t *testing.T, wire *apitest.Wire, streams bool) {
	t.Helper()
	var pages []string
	streamed := false
	for _, call := range wire.Calls() {
		switch {
		case call.Resource != "certificatesigningrequests" || call.Method != http.MethodGet:
		case call.IsWatch():
			streamed = streamed || call.Query.Get("sendInitialEvents") == "true"
		default:
			pages = append(pages, call.Query.Get("limit"))
		}
	}
	if streams {
		if !streamed || len(pages) > 0 {
			t.Errorf("streamed is %t, lists of %v", streamed, pages)
		}
	} else if limit := fmt.Sprint(kube.LargeObjectsPerPage); !slices.Equal(pages, []string{limit, limit}) {
		t.Errorf("lists of %v, want two of %s", pages, limit)
	}
}
