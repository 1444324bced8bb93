package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/canary"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

const (
	fleetName = "expiry"
	cluster   = "cluster1"

	// What docs/consumers.md calls the things of its example.
	team     = "my-team"
	consumer = "my-consumer"

	// eventually bounds waits that depend on several components, next to a busy
	// fleet of other stories.
	eventually = 5 * time.Minute

	// validity is the shortest a cluster grants.
	validity = 10 * time.Minute
	// leeway is more than the time that API servers accept an expired token.
	leeway = 3 * time.Minute
)

// copied is the Secret from which the consumer reads its token.
var copied = types.NamespacedName{Namespace: team, Name: cluster + "-" + consumer}

// changes are the differences between this story and the guide.
var changes = strings.NewReplacer(
	"validity: 24h", "validity: "+validity.String(),
	"image: example.com/my-consumer:v1",
	"image: example.com/my-consumer:v1\n        env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]",
)

func TestMain(m *testing.M) {
	node.Init()
	m.Run()
}

// A consumer set up as the guide says keeps working while its token expires on the
// cluster and new ones replace it, without a failed request.
func TestConsumerCrossesTheExpiryOfItsToken(t *testing.T) {
	if err := node.CheckOwnNetworks(); err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	f := start(t)
	hub, spoke := clientOf(t, f, fleet.HubName), clientOf(t, f, cluster)
	follow(t, f)

	work := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "expiry"},
		Data: map[string]string{"wanted": "one"}}
	apitest.Must(t, spoke.Create(t.Context(), work))
	seen(t, spoke, work, "one")
	first := &corev1.Secret{}
	apitest.Must(t, hub.Get(t.Context(), copied, first))
	before := report(t, hub)

	tokens := expired(t, f, string(first.Data["token"]))
	patch := []byte(`{"data":{"wanted":"two"}}`)
	apitest.Must(t, spoke.Patch(t.Context(), work, client.RawPatch(types.MergePatchType, patch)))
	seen(t, spoke, work, "two")
	after := report(t, hub)
	t.Logf("before: %+v; after: %+v", before, after)
	if after.Failed != before.Failed || after.Engagements != 1 || !after.Engaged ||
		after.Tokens < 2 || after.Reconciles <= before.Reconciles {
		t.Errorf("the consumer did %+v when its token had expired, and %+v at first: want another token, one engagement and no failed request", after, before)
	}
	apitest.Must(t, tokens.Logs(f.LogDir()))
	for _, name := range []string{fleet.HubName, cluster} {
		apitest.Must(t, tokens.Objects(t.Context(), clientOf(t, f, name)))
	}
}

func start(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Up(t.Context(), fleet.Options{Name: fleetName, Spokes: 1, Access: true}, os.Stderr)
	apitest.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			f.Diagnose(context.Background(), os.Stderr)
		}
		if os.Getenv("KEEP_FLEET") != "" {
			return
		}
		if err := fleet.Down(context.Background(), fleetName, os.Stderr); err != nil {
			t.Error(err)
		}
	})
	apitest.Must(t, consumers.BuildImage(t.Context(), f, os.Stderr))
	// Log everything, so that a logged token is found.
	apitest.Must(t, f.Deploy(t.Context(), os.Stderr, "--set", "logLevel=10", "--set", "agent.logLevel=10"))
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster,
		Name: "cluster-inventory"}}
	apitest.Must(t, client.IgnoreAlreadyExists(clientOf(t, f, fleet.HubName).Create(t.Context(), addon)))
	return f
}

// follow does what the guide says.
func follow(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	steps, err := guide.Read(f, "consumers.md", "Step by step")
	apitest.Must(t, err)
	changed := 0
	for _, step := range steps {
		line, input := step.Command, changes.Replace(step.YAML)
		if line == "" {
			line = "kubectl apply -f -"
		}
		if input != step.YAML {
			changed++
		}
		apitest.Within(t, eventually, line, func(ctx context.Context) error {
			said, err := guide.Type(ctx, f, line, input)
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("no output")
			}
			return err
		})
	}
	if changed != 2 {
		t.Fatalf("%d blocks of the guide were changed, want 2", changed)
	}
}

// expired waits until the cluster itself rejects a token. It returns a search for every
// token that was copied until then.
func expired(t *testing.T, f *fleet.Fleet, token string) *canary.Search {
	t.Helper()
	tokens, hub := canary.New(), clientOf(t, f, fleet.HubName)
	admin, err := f.Cluster(cluster)
	apitest.Must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	bearer, err := kubernetes.NewForConfig(config)
	apitest.Must(t, err)
	begun := time.Now()
	apitest.Within(t, validity+leeway, "the first token expires", func(ctx context.Context) error {
		now := &corev1.Secret{}
		if err := hub.Get(ctx, copied, now); err != nil {
			return err
		}
		tokens.For(string(now.Data["token"]))
		_, err := bearer.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return fmt.Errorf("the cluster answers it: %w", err)
	})
	t.Logf("the cluster took the first token for another %s", time.Since(begun).Round(time.Second))
	_, until, err := journeys.TokenValidity(token)
	apitest.Must(t, err)
	if ended := time.Now(); ended.Before(until) {
		t.Errorf("it ended at %s and was valid until %s", ended, until)
	}
	return tokens
}

func seen(t *testing.T, spoke client.Client, work *corev1.ConfigMap, value string) {
	t.Helper()
	apitest.Within(t, eventually, "the consumer sees "+value, func(ctx context.Context) error {
		if err := spoke.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if work.Data["seen"] != value {
			return fmt.Errorf("it sees %q", work.Data["seen"])
		}
		return nil
	})
}

// report is the consumer's report on its one cluster. It fails if the consumer was
// restarted.
func report(t *testing.T, hub client.Client) status.Cluster {
	t.Helper()
	told := status.Report{}
	apitest.Within(t, eventually, "the consumer reports", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := hub.List(ctx, pods, client.InNamespace(team)); err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 ||
			pods.Items[0].Status.ContainerStatuses[0].RestartCount > 0 {
			return fmt.Errorf("there is not one Pod that was never restarted: %+v", pods.Items)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+net.JoinHostPort(pods.Items[0].Status.PodIP, strconv.Itoa(status.Port)), nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		return errors.Join(json.NewDecoder(resp.Body).Decode(&told), resp.Body.Close())
	})
	return told[team+"/"+cluster]
}

func clientOf(t *testing.T, f *fleet.Fleet, name string) client.Client {
	t.Helper()
	c, err := f.Client(name)
	apitest.Must(t, err)
	return c
}
