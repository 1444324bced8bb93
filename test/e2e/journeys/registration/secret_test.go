package registration

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A user deletes the Secret with the agent's kubeconfig for the hub: the klusterlet
// recreates it, and the agent continues with that, without a restart.
func TestTheKubeconfigsSecretIsDeleted(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byCertificate, byToken)
	for _, cluster := range []string{byCertificate, byToken} {
		pod := running(t, cluster)
		before, err := secretOf(t.Context(), t, cluster)
		apitest.Must(t, err)
		apitest.Must(t, journeys.ClientOf(t, cluster).Delete(t.Context(), before))
		renewed(t, cluster, before)
		reports(t, cluster)
		if now := running(t, cluster); now != pod {
			t.Errorf("the agent of %s was %s, and is %s", cluster, pod, now)
		}
	}
}

// A user corrupts the Secret. A klusterlet that registers by certificate repairs it by
// itself. One that registers by token does not: the agent reports what is wrong and where,
// and continues to publish, even after a restart, when it is not ready. When a user
// deletes the Secret, the agent recovers. The other cluster is not affected.
func TestTheKubeconfigsSecretIsGarbled(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byCertificate, byToken)
	ns := journeys.Sandbox(t, "garbled", byCertificate, byToken)
	pods := map[string]string{byCertificate: running(t, byCertificate), byToken: running(t, byToken)}

	before, err := secretOf(t.Context(), t, byCertificate)
	apitest.Must(t, err)
	apitest.Must(t, garble(t, byCertificate, `{"data":{"tls.crt":"bm90aGluZw==","kubeconfig":"bm90aGluZw=="}}`))
	renewed(t, byCertificate, before)
	reports(t, byCertificate)

	unharmed := stands(t, byCertificate)
	before, err = secretOf(t.Context(), t, byToken)
	apitest.Must(t, err)
	apitest.Must(t, garble(t, byToken, otherCA(t, before)))
	journeys.Says(t, byToken, journeys.PropertiesPublished, metav1.ConditionFalse, "HubKubeconfigInvalid",
		"its CA certificates cannot be read")
	apitest.Must(t, garble(t, byToken, `{"data":{"kubeconfig":""}}`))
	journeys.Says(t, byToken, journeys.PropertiesPublished, metav1.ConditionFalse, "HubKubeconfigInvalid",
		"Secret "+journeys.AgentNS+"/cluster-inventory-hub-kubeconfig", "its kubeconfig cannot be read", "delete the Secret")
	journeys.Sets(t, byToken, "meanwhile.example", "published")
	journeys.HasProfile(t, ns, byToken)
	journeys.Shows(t, ns, byToken, "meanwhile.example", "published")

	if now := running(t, byToken); now != pods[byToken] {
		t.Errorf("the agent of %s was %s, and is %s", byToken, pods[byToken], now)
	}
	apitest.Must(t, journeys.ClientOf(t, byToken).Delete(t.Context(), journeys.AgentPod(t.Context(), t, byToken)))
	journeys.Says(t, byToken, "Available", metav1.ConditionFalse, "ProbeUnavailable", "is ready")
	journeys.Sets(t, byToken, "meanwhile.example", "published without a hub")
	journeys.Shows(t, ns, byToken, "meanwhile.example", "published without a hub")

	apitest.Must(t, journeys.ClientOf(t, byToken).Delete(t.Context(), before))
	renewed(t, byToken, before)
	journeys.Says(t, byToken, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
	reports(t, byToken)
	if diff := cmp.Diff(unharmed, stands(t, byCertificate)); diff != "" {
		t.Errorf("the addon of %s changed, too (-before +after):\n%s", byCertificate, diff)
	}
	if now := running(t, byCertificate); now != pods[byCertificate] {
		t.Errorf("the agent of %s was %s, and is %s", byCertificate, pods[byCertificate], now)
	}
	if now := running(t, byToken); !strings.HasSuffix(now, "restarted 0 times") {
		t.Errorf("the new agent of %s is %s", byToken, now)
	}
}

// otherCA is a patch that gives a Secret's kubeconfig an invalid CA.
func otherCA(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	kubeconfig, err := clientcmd.Load(secret.Data["kubeconfig"])
	apitest.Must(t, err)
	for _, cluster := range kubeconfig.Clusters {
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", []byte("nothing")
	}
	content, err := clientcmd.Write(*kubeconfig)
	apitest.Must(t, err)
	return fmt.Sprintf(`{"data":{"kubeconfig":%q}}`, base64.StdEncoding.EncodeToString(content))
}

// garble alters the Secret with a cluster's kubeconfig for the hub.
func garble(t *testing.T, cluster, patch string) error {
	t.Helper()
	secret, err := secretOf(t.Context(), t, cluster)
	if err != nil {
		return err
	}
	return journeys.ClientOf(t, cluster).Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// stands returns the conditions that a cluster's agent affects, with the times of their
// last changes.
func stands(t *testing.T, cluster string) []metav1.Condition {
	t.Helper()
	addon := journeys.AddonOf(cluster)
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
	return slices.DeleteFunc(addon.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type != "Available" && c.Type != journeys.PropertiesPublished
	})
}
