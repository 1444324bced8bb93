package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

const (
	// placementUser has the rights of the account of Open Cluster Management's placement controller.
	placementUser = "placement"

	// wakeEvery is how often, after a fault of the placement controller's, something happens on the
	// hub that makes it look at the Placement again. By itself it would do so after up to ten minutes:
	// it forgets that a slice was not written.
	wakeEvery = 20 * time.Second
)

// placementPrefix is that of the faults of what the placement controller writes.
const placementPrefix = "placement:"

// ofPlacement are all of them.
var ofPlacement = func() []proxy.Kind {
	var kinds []proxy.Kind
	for _, kind := range proxy.OfWrites {
		kinds = append(kinds, placementPrefix+kind)
	}
	return kinds
}()

// divided returns what happens to the manager, and what to the placement controller.
func divided(fault proxy.Fault) (toManager, toPlacement proxy.Fault) {
	none := proxy.Fault{Kind: proxy.None}
	kind, is := strings.CutPrefix(string(fault.Kind), placementPrefix)
	if !is {
		return fault, none
	}
	return none, proxy.Fault{Kind: proxy.Kind(kind), Key: fault.Key}
}

// schedule starts Open Cluster Management's placement controller behind a proxy of its own.
func (l *lane) schedule(tb testing.TB) *manager {
	tb.Helper()
	folder := l.writer.upstream
	if folder == "" {
		tb.Fatal("the story needs -upstream, a folder with Open Cluster Management's programs")
	}
	if l.scheduler == nil { // the hub gets what stays
		l.server.Install(l.tb, apitest.AddOnPlacementScore())
		l.createNamespaces(append([]string{registrationNamespace}, fleetNames...)...)
		l.installRights(filepath.Join(folder, "placement-rights.yaml"), placementUser)
		l.scheduler = l.server.User(l.tb, placementUser)
	}
	return l.behindProxy(l.scheduler, 0, func(cfg *rest.Config) func() []*exec.Cmd {
		kubeconfig := apitest.File(l.tb, "kubeconfig", apitest.Kubeconfig(l.tb, cfg, ""))
		return func() []*exec.Cmd { return []*exec.Cmd{placementCommand(folder, kubeconfig, freePort())} }
	})
}

// placementCommand is the controller with the flags that OCM's operator gives it, but for a leader's
// election and the address of its probes.
func placementCommand(folder, kubeconfig string, port int) *exec.Cmd {
	cmd := exec.Command(filepath.Join(folder, "ocm"), "placement", "controller",
		"--kubeconfig="+kubeconfig, "--namespace="+registrationNamespace, "--disable-leader-election",
		fmt.Sprintf("--listen=127.0.0.1:%d", port))
	cmd.Env = append(os.Environ(), olderClient...)
	cmd.Env = append(cmd.Env, "POD_NAMESPACE="+registrationNamespace)
	return cmd
}

// wake changes an annotation of the Placement again and again after the placement controller had its
// fault, until the returned function is called: so do events on a busy hub.
func (r *running) wake(tb testing.TB) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; {
			fired := r.placement.proxy.Record().Fired
			if !fired.IsZero() && time.Since(fired) >= time.Duration(n)*wakeEvery {
				placement := &clusterv1beta1.Placement{}
				placement.Namespace, placement.Name = teamA, placementName
				text := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/look":"%d"}}}`, n)
				_ = r.lane.admin.Patch(ctx, placement, client.RawPatch(types.MergePatchType, text)) // the next one may do
				n++
			}
			if pause(ctx, poll) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// decided are the effective writes of the placement controller.
func (r *running) decided() []proxy.Key {
	if r.placement == nil {
		return nil
	}
	return effective(r.placement.proxy.Record().Writes)
}

// joinSlices replaces, in a state, what each slice of references has by what all slices of a namespace
// have together: which slice has a reference depends on the order of writes.
func joinSlices(state map[string]string) {
	all := map[string][]string{}
	for id, content := range state {
		resource, key, _ := strings.Cut(id, " ")
		var slice map[string]any
		if resource != references || json.Unmarshal([]byte(content), &slice) != nil {
			continue
		}
		of := references + " in " + namespaceOf(key)
		decisions, _ := slice["decisions"].([]any)
		for _, decision := range decisions {
			all[of] = append(all[of], fmt.Sprint(decision))
		}
		delete(slice, "decisions")
		state[id] = fmt.Sprint(slice)
	}
	for of, decisions := range all {
		state[of] = strings.Join(sorted(decisions), "\n")
	}
}

// isOfCluster reports whether a namespace is that of a cluster.
func isOfCluster(namespace string) bool {
	return slices.Contains(clusterNames, namespace) || slices.Contains(fleetNames, namespace) ||
		slices.Contains(manyNames, namespace)
}
