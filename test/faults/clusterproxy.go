package faults

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

const proxyNamespace = "open-cluster-management-addon"

// servingCertificate returns what cluster-proxy's Secret holds. All hubs have the same.
func servingCertificate(tb testing.TB) []byte {
	tb.Helper()
	ca := certtest.NewCA(tb, "ca", time.Now().Add(24*time.Hour))
	return certtest.Chain(certtest.NewLeaf(tb, ca, "cluster-proxy-addon-user."+proxyNamespace), ca)
}

// clusterProxy is cluster-proxy as its chart installs it, without pods and with its own
// ClusterProfile feature off. Without it, the manager that starts waits for ten seconds before
// it takes it for missing.
func clusterProxy(certificate []byte) []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: proxyNamespace, Name: name} }
	labels := map[string]string{"app": "cluster-proxy"}
	return []client.Object{
		&appsv1.Deployment{
			ObjectMeta: named("cluster-proxy-addon-manager"),
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "m"}}},
				},
			},
		},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration",
			"metadata": map[string]any{"name": "cluster-proxy"},
			"spec": map[string]any{
				"authentication": map[string]any{"signer": map[string]any{"type": "SelfSigned"}},
				"userServer":     map[string]any{},
				"proxyServer":    map[string]any{"image": "p", "namespace": proxyNamespace},
				"proxyAgent":     map[string]any{"image": "a"},
			},
		}},
		&corev1.Service{
			ObjectMeta: named("cluster-proxy-addon-user"),
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 9092}}},
		},
		&corev1.Secret{
			ObjectMeta: named("cluster-proxy-user-serving-cert"), Data: map[string][]byte{"tls.crt": certificate},
		},
	}
}

// replaceClusterProxy deletes cluster-proxy's Service, configuration and certificate and creates
// them again.
func (w *world) replaceClusterProxy() {
	w.T.Helper()
	for _, object := range clusterProxy(nil) {
		switch object.(type) {
		case *corev1.Secret:
			w.MustGet(object)
			w.MustDelete(object)
			object.SetUID("")
			object.SetResourceVersion("")
			w.MustCreate(object)
		case *corev1.Service, *unstructured.Unstructured:
			w.MustDelete(object)
			object.SetResourceVersion("")
			w.MustCreate(object)
		}
	}
}

// proxyAddon is cluster-proxy on a cluster.
func proxyAddon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-proxy"}}
}
