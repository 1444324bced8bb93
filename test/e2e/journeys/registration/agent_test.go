package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// secretOf returns the Secret that a cluster's agent uses for the hub. When the story ends,
// a token in it is searched for.
func secretOf(ctx context.Context, t *testing.T, cluster string) (*corev1.Secret, error) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: journeys.AgentNS,
		Name: "cluster-inventory-hub-kubeconfig"}}
	err := journeys.ClientOf(t, cluster).Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if token := secret.Data["token"]; len(token) > 0 {
		journeys.Tokens.For(string(token))
	}
	return secret, err
}

// as returns a client of the hub with the identity in a Secret's kubeconfig.
func as(t *testing.T, secret *corev1.Secret) client.Client {
	t.Helper()
	dir := t.TempDir()
	for name, content := range secret.Data {
		apitest.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return clientFrom(t, filepath.Join(dir, "kubeconfig"))
}

// klusterlet returns a client of the hub that is a cluster's klusterlet.
func klusterlet(t *testing.T, cluster string) client.Client {
	t.Helper()
	return clientFrom(t, filepath.Join(journeys.Fleet.Dir, cluster, "hub-kubeconfig", "kubeconfig"))
}

func clientFrom(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	apitest.Must(t, err)
	c, err := client.New(cfg, client.Options{Scheme: journeys.Hub(t).Scheme()})
	apitest.Must(t, err)
	return c
}

// agentOf returns a client of the hub that is a cluster's agent.
func agentOf(t *testing.T, cluster string) client.Client {
	t.Helper()
	secret, err := secretOf(t.Context(), t, cluster)
	apitest.Must(t, err)
	return as(t, secret)
}

// who returns the client's user name according to the hub.
func who(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	return review.Status.UserInfo, err
}

// reports proves that a cluster's agent still writes its condition to the hub: it reports a
// property that cannot be published, and that it is gone.
func reports(t *testing.T, clusters ...string) {
	t.Helper()
	const tooLong = "too-long.example"
	for _, cluster := range clusters {
		journeys.Sets(t, cluster, tooLong, strings.Repeat("x", 1025))
	}
	for _, cluster := range clusters {
		journeys.Says(t, cluster, journeys.PropertiesPublished, metav1.ConditionFalse, "PartiallyPublished", tooLong)
		journeys.Unsets(t, cluster, tooLong)
	}
	for _, cluster := range clusters {
		journeys.Says(t, cluster, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
		_, err := secretOf(t.Context(), t, cluster) // with which it did so
		apitest.Must(t, err)
	}
}

// running identifies the agent's Pod, and how often it was restarted.
func running(t *testing.T, cluster string) string {
	t.Helper()
	pod := journeys.AgentPod(t.Context(), t, cluster)
	return fmt.Sprintf("%s, restarted %d times", pod.UID, pod.Status.ContainerStatuses[0].RestartCount)
}

// renewed waits until a Secret's credentials have changed, and returns it.
func renewed(t *testing.T, cluster string, before *corev1.Secret) *corev1.Secret {
	t.Helper()
	var now *corev1.Secret
	apitest.Within(t, journeys.Eventually, cluster+" has new credentials", func(ctx context.Context) error {
		var err error
		if now, err = secretOf(ctx, t, cluster); err != nil {
			return err
		}
		if slices.Equal(now.Data["token"], before.Data["token"]) &&
			slices.Equal(now.Data["tls.crt"], before.Data["tls.crt"]) {
			return errors.New("they are the same")
		}
		if got, want := slices.Sorted(maps.Keys(now.Data)), slices.Sorted(maps.Keys(before.Data)); !slices.Equal(got, want) {
			return fmt.Errorf("it has %v, not %v", got, want)
		}
		return nil
	})
	return now
}
