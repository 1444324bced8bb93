package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// The hub is asked again after recheckFirst, then at doubling intervals up to recheckMost.
const (
	recheckFirst = time.Second
	recheckMost  = 8 * time.Second
)

// leasePatience is how long to wait for Helm to create the Lease, and leaseLook how often
// to check.
const (
	leasePatience = 30 * time.Second
	leaseLook     = 500 * time.Millisecond
)

// ocmKinds are the kinds that every hub of Open Cluster Management serves and without which
// the manager's caches cannot sync. Controllers wait themselves for kinds that may be
// installed much later, such as ClusterProfiles.
func ocmKinds() watch.Kinds {
	kinds := selection.Kinds()
	maps.Copy(kinds, watch.Kinds{
		"clustermanagementaddons.addon.open-cluster-management.io": addonKind("ClusterManagementAddOn"),
		"addondeploymentconfigs.addon.open-cluster-management.io":  addonKind("AddOnDeploymentConfig"),
		"manifestworks.work.open-cluster-management.io": {
			Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork",
		},
	})
	return kinds
}

func addonKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: kind}
}

// waitForOCM waits until the hub serves Open Cluster Management's own kinds. served is
// false if the context ended first. Meanwhile report is called with the missing kinds, each
// time they change.
func waitForOCM(ctx context.Context, cfg *rest.Config, report func(waiting string)) (served bool, err error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return false, err
	}
	discovery, err := watch.NewDiscovery(cfg, httpClient)
	if err != nil {
		return false, err
	}
	last := ""
	for delay := recheckFirst; ; delay = min(2*delay, recheckMost) {
		waiting := unserved(ctx, discovery)
		switch {
		case ctx.Err() != nil:
			return false, nil //nolint:nilerr // the manager was told to end
		case waiting == "":
			if last != "" {
				log.FromContext(ctx).Info("The hub serves Open Cluster Management's APIs now")
			}
			return true, nil
		case waiting != last:
			log.FromContext(ctx).Info("Waiting for the hub to serve Open Cluster Management's APIs", "missing", waiting)
			report("waiting for the hub to serve " + waiting)
			last, delay = waiting, recheckFirst
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(delay):
		}
	}
}

// unserved lists the kinds that the hub does not serve, and the first error of checking that.
func unserved(ctx context.Context, discovery *watch.Discovery) string {
	var names []string
	var failure error
	kinds := ocmKinds()
	for _, crd := range slices.Sorted(maps.Keys(kinds)) {
		served, err := discovery.Serves(ctx, kinds[crd])
		if !served {
			names = append(names, crd+"/"+kinds[crd].Version)
		}
		if failure == nil {
			failure = err
		}
	}
	text := strings.Join(names, ", ")
	if failure != nil {
		return fmt.Sprintf("%s (cannot check: %s)", text, failure)
	}
	return text
}

// waitForLease waits until the Lease of the leader election exists, but not forever. Helm
// creates it after the Deployment, and would fail if the manager had been faster. Helm does
// not recreate a Lease that a user has deleted, so then the manager does.
func waitForLease(ctx context.Context, live client.Reader, lease client.ObjectKey, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := func(ctx context.Context) (bool, error) {
		err := live.Get(ctx, lease, &coordinationv1.Lease{}) // whole, so that fenceWrites knows it before there are caches
		return err == nil || apierrors.IsForbidden(err), nil
	}
	if err := wait.PollUntilContextCancel(ctx, leaseLook, true, look); err != nil {
		log.FromContext(ctx).Info("The Lease of the leader election does not exist yet", "lease", lease)
	}
}
