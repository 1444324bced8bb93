package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// probe returns the status code and body of one of the manager's probes; no server
// is status 0.
func probe(t *testing.T, address, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	apitest.Must(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	apitest.Must(t, err)
	return resp.StatusCode, string(body)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	apitest.Must(t, err)
	apitest.Must(t, listener.Close())
	return listener.Addr().String()
}

func startOptions(t *testing.T) *Options {
	opts := newOptions()
	opts.LeaderElect, opts.severalManagers = false, true
	opts.UpstreamGates = "off"
	opts.CredentialsServiceAccount = hubtest.Namespace + "/" + hubtest.Account
	opts.HealthProbeBindAddress = freeAddress(t)
	opts.Metrics.BindAddress = "0"
	apitest.Must(t, opts.validate())
	return opts
}

// A hub may be without Open Cluster Management when the manager starts. Profiles need no accounts:
// here, their conversion webhook fails.
func TestTheManagerWaitsForOpenClusterManagement(t *testing.T) {
	server := apitest.Start(t)
	t.Run("and ends while it does", func(t *testing.T) { endsWhileItWaits(t, server.Config(t)) })
	w := apitest.NewWorld(t, server.Config(t), ocmtest.Scheme())
	hubtest.Install(w, "", hubtest.Rights)
	opts := startOptions(t)
	wire := &apitest.Wire{}
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource == "managedserviceaccounts" {
			return apitest.Fault{Status: http.StatusInternalServerError}
		}
		return apitest.Fault{}
	})
	cfg := wire.Tap(server.User(t, hubtest.User))
	apitest.Run(t, func(ctx context.Context) error { return run(ctx, cfg, opts) })

	waits := func(what ...string) {
		t.Helper()
		w.Eventually("it says what it waits for", func() string {
			code, body := probe(t, opts.HealthProbeBindAddress, "/readyz")
			want := "waiting for the hub to serve " + strings.Join(what, ", ") + "\n"
			return cmp.Diff(fmt.Sprint(http.StatusServiceUnavailable, " ", want), fmt.Sprint(code, " ", body))
		})
		if code, body := probe(t, opts.HealthProbeBindAddress, "/healthz"); code != http.StatusOK {
			t.Errorf("liveness: %d %s", code, body)
		}
	}
	works := "manifestworks.work.open-cluster-management.io/v1"
	waits(
		"addondeploymentconfigs.addon.open-cluster-management.io/v1beta1",
		"clustermanagementaddons.addon.open-cluster-management.io/v1beta1",
		"managedclusteraddons.addon.open-cluster-management.io/v1beta1",
		"managedclusters.cluster.open-cluster-management.io/v1",
		"managedclustersetbindings.cluster.open-cluster-management.io/v1beta2",
		"managedclustersets.cluster.open-cluster-management.io/v1beta2",
		works,
		"placementdecisions.cluster.open-cluster-management.io/v1beta1",
		"placements.cluster.open-cluster-management.io/v1beta1",
	)
	server.Install(t, butWorks)
	waits(works)

	server.Install(t, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())
	w.Eventually("the accounts cannot be listed", func() string {
		for _, call := range wire.Calls() {
			if call.Resource == "managedserviceaccounts" {
				return ""
			}
		}
		return "they are not asked for"
	})
	w.Eventually("it is ready", func() string {
		if code, body := probe(t, opts.HealthProbeBindAddress, "/readyz"); code != http.StatusOK {
			return fmt.Sprint(code, " ", body)
		}
		return ""
	})
	hub := ocmtest.New(t, server.Config(t))
	hubtest.Install(hub.World, "", func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "ClusterManagementAddOn"
	})
	set := hub.ExclusiveSet("set")
	team := hub.Namespace("team", nil)
	hub.Bind(team, set.Name)
	cluster := hub.Cluster("c1", ocmtest.InSet(set.Name))
	hub.Eventually("the profile appears", func() string {
		if hub.Profile(team, cluster.Name) == nil {
			return "there is none"
		}
		return ""
	})
	if code, body := probe(t, opts.HealthProbeBindAddress, "/healthz"); code != http.StatusOK {
		t.Errorf("liveness: %d %s", code, body)
	}
}

// butWorks are the hub's CRDs without that of ManifestWorks.
func butWorks() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := apitest.Hub()()
	return slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Names.Plural == "manifestworks"
	}), err
}

func endsWhileItWaits(t *testing.T, cfg *rest.Config) {
	opts := startOptions(t)
	stop := apitest.Run(t, func(ctx context.Context) error { return run(ctx, cfg, opts) })
	apitest.Eventually(t, apitest.Patience, "it waits", func() string {
		if _, body := probe(t, opts.HealthProbeBindAddress, "/readyz"); !strings.Contains(body, "managedclusters") {
			return body
		}
		return ""
	})
	stop() // reports an error
	if code, _ := probe(t, opts.HealthProbeBindAddress, "/healthz"); code != 0 {
		t.Errorf("the probes still answer, with %d", code)
	}
}

// The manager also waits for an API server that does not respond.
func TestTheManagerWaitsForTheAPIServer(t *testing.T) {
	cfg := &rest.Config{Host: "https://" + freeAddress(t)}
	opts := startOptions(t)
	stop := apitest.Run(t, func(ctx context.Context) error { return run(ctx, cfg, opts) })
	apitest.Eventually(t, apitest.Patience, "it waits", func() string {
		code, body := probe(t, opts.HealthProbeBindAddress, "/readyz")
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "connection refused") {
			return fmt.Sprint(code, " ", body)
		}
		return ""
	})
	if code, body := probe(t, opts.HealthProbeBindAddress, "/healthz"); code != http.StatusOK {
		t.Errorf("liveness: %d %s", code, body)
	}
	stop()
}

// An API server that accepts requests but does not respond does not keep the manager from
// exiting.
func TestManagerEndsAlthoughTheAPIServerHangs(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(asked) })
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	opts, ended := startOptions(t), make(chan error, 1)
	go func() { ended <- run(ctx, &rest.Config{Host: server.URL}, opts) }()
	<-asked
	cancel()
	select {
	case err := <-ended:
		apitest.Must(t, err)
	case <-time.After(apitest.Patience):
		t.Error("it waits for the answer")
	}
}

func TestAnAddressInUseEndsTheManager(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	apitest.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	if _, err := newHealth(listener.Addr().String()); err == nil ||
		!strings.Contains(err.Error(), "--health-probe-bind-address") {
		t.Errorf("got %v", err)
	}
}

func TestHealth(t *testing.T) {
	t.Run("turned off, the work runs alone", func(t *testing.T) {
		h, err := newHealth("0")
		apitest.Must(t, err)
		if err := h.serveWhile(t.Context(), func(context.Context) error { return io.EOF }); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want what the work returns", err)
		}
	})
	t.Run("an error of the server ends the work", func(t *testing.T) {
		h, err := newHealth("127.0.0.1:0")
		apitest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
		defer cancel()
		err = h.serveWhile(ctx, func(ctx context.Context) error {
			apitest.Must(t, h.listener.Close())
			<-ctx.Done()
			return nil
		})
		if err == nil || ctx.Err() != nil {
			t.Errorf("got %v, %v; want the server's error", err, ctx.Err())
		}
	})
	t.Run("it serves until the work has ended, errors included", func(t *testing.T) {
		h, err := newHealth("127.0.0.1:0")
		apitest.Must(t, err)
		address := h.listener.Addr().String()
		ctx, cancel := context.WithCancel(t.Context())
		err = h.serveWhile(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			h.setReady()
			for _, path := range []string{"/healthz", "/readyz", "/readyz/ping"} {
				if code, body := probe(t, address, path); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			for _, path := range []string{"/", "/metrics", "/debug/pprof/", "/configz", "/flagz"} {
				if code, body := probe(t, address, path); code != http.StatusNotFound {
					t.Errorf("%s is served beside the probes: %d %s", path, code, body)
				}
			}
			return io.EOF
		})
		if !errors.Is(err, io.EOF) || err.Error() != io.EOF.Error() {
			t.Errorf("got %v, want what the work returns", err)
		}
	})
}

// TestTheLeaseIsLeftToHelm, which fails if the manager creates it first.
func TestTheLeaseIsLeftToHelm(t *testing.T) {
	w := apitest.NewWorld(t, hub.Config(t), ocmtest.Scheme())
	lease := client.ObjectKey{Namespace: "default", Name: "cluster-inventory-manager"}
	ended := make(chan struct{})
	wire := &apitest.Wire{}
	live, err := client.New(wire.Tap(hub.Config(t)), client.Options{})
	apitest.Must(t, err)
	go func() {
		defer close(ended)
		waitForLease(t.Context(), live, lease, time.Hour)
	}()
	w.Eventually("it looks for the Lease again", func() string {
		if n := len(wire.Calls()); n < 3 {
			return fmt.Sprintf("%d requests", n)
		}
		return ""
	})
	select {
	case <-ended:
		t.Fatal("it has not waited")
	default:
	}
	w.MustCreate(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name}})
	<-ended
	if writes := wire.Writes(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	lease.Name = "of-nobody"
	waitForLease(t.Context(), live, lease, time.Millisecond) // not forever
}
