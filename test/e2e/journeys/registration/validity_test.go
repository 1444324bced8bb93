package registration

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	// lifetime is the shortest validity of the hub's certificates and tokens.
	lifetime = 10 * time.Minute

	// leeway is more than the time that API servers accept an expired credential.
	leeway = 2 * time.Minute

	// pace is the time between two properties.
	pace = 10 * time.Second
)

// The agents' certificate and token are renewed and expire, while properties keep changing:
// no change is missed, each is reported, and no agent is restarted.
func TestPropertiesCrossTheEndOfCredentials(t *testing.T) {
	journeys.Installed(t)
	clusters := []string{byCertificate, byToken}
	for _, cluster := range clusters {
		journeys.Disable(t, cluster)
	}
	_, err := fleet.Up(t.Context(), options(lifetime), os.Stderr)
	apitest.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), journeys.Eventually)
		defer cancel()
		if _, err := fleet.Up(ctx, options(0), os.Stderr); err != nil {
			t.Error(err)
		}
	})
	journeys.Enabled(t, clusters...)
	ns := journeys.Sandbox(t, "expiry", clusters...)
	type life struct {
		secret *corev1.Secret
		hub    client.Client
		pod    string
	}
	first := map[string]life{}
	var renewable, over time.Time
	for _, cluster := range clusters {
		journeys.HasProfile(t, ns, cluster)
		secret, err := secretOf(t.Context(), t, cluster)
		apitest.Must(t, err)
		first[cluster] = life{secret, as(t, secret), running(t, cluster)}
		from, until := validity(t, secret)
		t.Logf("%s has credentials from %s until %s", cluster, from, until)
		if until.After(time.Now().Add(lifetime)) {
			t.Fatalf("they live longer than %s", lifetime)
		}
		// OCM renews credentials after four fifths of their validity.
		renewable = latest(renewable, until.Add(-until.Sub(from)/5).Add(time.Second))
		over = latest(over, until.Add(leeway))
	}

	ended := map[string]bool{}
	again := false
	for n := 1; len(ended) < len(clusters); n++ {
		late := time.Now().After(over)
		value := fmt.Sprint(n)
		for _, cluster := range clusters {
			journeys.Sets(t, cluster, "counting.example", value)
		}
		for _, cluster := range clusters {
			journeys.Shows(t, ns, cluster, "counting.example", value)
		}
		reports(t, clusters...)
		if !again && time.Now().After(renewable) {
			again = true
			// Klusterlets look at their credentials every five minutes, which is too seldom
			// for such short lives, and when they start.
			for _, cluster := range clusters {
				apitest.Must(t, journeys.Fleet.Restart(t.Context(), cluster+"/registration-agent"))
			}
			for _, cluster := range clusters {
				renewed(t, cluster, first[cluster].secret)
			}
			t.Logf("renewed after %d properties", n)
		}
		for _, cluster := range clusters {
			if _, err := who(t.Context(), first[cluster].hub); apierrors.IsUnauthorized(err) && !ended[cluster] {
				t.Logf("the hub does not take the first credentials of %s any more, after %d properties", cluster, n)
				ended[cluster] = true
			}
		}
		if late && len(ended) < len(clusters) {
			t.Fatalf("the hub still takes the first credentials; it does not any more of %v", ended)
		}
		<-time.After(pace)
	}
	if !again {
		t.Error("they ended before they were to be renewed")
	}
	for _, cluster := range clusters {
		if now := running(t, cluster); now != first[cluster].pod {
			t.Errorf("the agent of %s was %s, and is %s", cluster, first[cluster].pod, now)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// validity returns from when until when the credentials in a Secret are valid.
func validity(t *testing.T, secret *corev1.Secret) (from, until time.Time) {
	t.Helper()
	if block, _ := pem.Decode(secret.Data["tls.crt"]); block != nil {
		certificate, err := x509.ParseCertificate(block.Bytes)
		apitest.Must(t, err)
		return certificate.NotBefore, certificate.NotAfter
	}
	from, until, err := journeys.TokenValidity(string(secret.Data["token"]))
	apitest.Must(t, err)
	return from, until
}
