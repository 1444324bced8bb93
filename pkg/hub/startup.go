package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Some changes send no event: the API server responds again, or serves a CRD that exists.
// So it is asked again after recheckFirst, then at doubling intervals up to recheckMost.
const (
	recheckFirst = time.Second
	recheckMost  = 30 * time.Second
)

// leasePatience is how long to wait for Helm to create the Lease, and leaseLook how often
// to check.
const (
	leasePatience = 30 * time.Second
	leaseLook     = 500 * time.Millisecond
)

// ocmKinds are the kinds, by the name of their CRD, that every hub of Open Cluster
// Management serves and without which the manager's caches cannot sync. Controllers wait
// themselves for kinds that may be installed much later, such as ClusterProfiles.
var ocmKinds = map[string]schema.GroupVersionKind{
	"managedclusters.cluster.open-cluster-management.io":           clusterKind("v1", "ManagedCluster"),
	"managedclustersets.cluster.open-cluster-management.io":        clusterKind("v1beta2", "ManagedClusterSet"),
	"managedclustersetbindings.cluster.open-cluster-management.io": clusterKind("v1beta2", "ManagedClusterSetBinding"),
	"placements.cluster.open-cluster-management.io":                clusterKind("v1beta1", "Placement"),
	"placementdecisions.cluster.open-cluster-management.io":        clusterKind("v1beta1", "PlacementDecision"),
	"managedclusteraddons.addon.open-cluster-management.io":        addonKind("ManagedClusterAddOn"),
	"clustermanagementaddons.addon.open-cluster-management.io":     addonKind("ClusterManagementAddOn"),
	"addondeploymentconfigs.addon.open-cluster-management.io":      addonKind("AddOnDeploymentConfig"),
	"manifestworks.work.open-cluster-management.io": {
		Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork",
	},
}

var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

func clusterKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: clusterv1.GroupName, Version: version, Kind: kind}
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
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return false, err
	}
	missing, answered := askUnserved(ctx, mapper)
	if !answered || len(missing) == 0 {
		return answered, nil
	}
	c, err := client.NewWithWatch(cfg, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return false, err
	}
	changed := make(chan struct{}, 1)
	crds := followCRDs(c, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	following, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { crds.Run(following) })
	return waitUntilServed(ctx, mapper, crds, changed, report), nil
}

func followCRDs(c client.WithWatch, changed func()) *kube.Follower {
	return kube.NewFollower(c, kube.Follow{
		Object: kube.Partial(kube.CRDKind), List: kube.PartialList(kube.CRDKind),
		Trim: func(in any) (any, error) {
			if full, ok := in.(*metav1.PartialObjectMetadata); ok {
				return &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta, ObjectMeta: kube.TrimMeta(full.ObjectMeta)}, nil
			}
			return in, nil
		},
		Changed: func(_, _ client.Object) { changed() },
		Synced:  changed,
	})
}

// waitUntilServed checks again after every change of a CRD.
func waitUntilServed(
	ctx context.Context, mapper meta.RESTMapper, crds *kube.Follower, changed <-chan struct{}, report func(string),
) (served bool) {
	last, delay := "", recheckFirst
	for {
		missing, answered := askUnserved(ctx, mapper)
		if !answered {
			return false
		}
		if len(missing) == 0 {
			log.FromContext(ctx).Info("The hub serves Open Cluster Management's APIs now")
			return true
		}
		if waiting := describe(missing); waiting != last {
			log.FromContext(ctx).Info("Waiting for the hub to serve Open Cluster Management's APIs", "missing", waiting)
			report("waiting for the hub to serve " + waiting)
			last = waiting
		}
		var recheck <-chan time.Time
		if mayComeSilently(missing, crds) {
			recheck = time.After(delay)
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
			delay = recheckFirst
		case <-recheck:
			delay = min(2*delay, recheckMost)
		}
	}
}

// askUnserved returns what unserved does; answered is false if the context ended first.
// Requests of a mapper have no context and no timeout, so an API server that does not
// respond would keep the manager from exiting.
func askUnserved(ctx context.Context, mapper meta.RESTMapper) (missing map[string]string, answered bool) {
	answer := make(chan map[string]string, 1)
	go func() { answer <- unserved(mapper) }()
	select {
	case <-ctx.Done():
		return nil, false
	case missing = <-answer:
		return missing, true
	}
}

// unserved returns, by the name of its CRD, why each kind that the hub does not serve
// cannot be used; the reason is empty if the kind does not exist.
func unserved(mapper meta.RESTMapper) map[string]string {
	missing := map[string]string{}
	for crd, kind := range ocmKinds {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing[crd] = ""
		default:
			missing[crd] = err.Error()
		}
	}
	return missing
}

// mayComeSilently reports whether something missing may be served without an event of its
// CRD.
func mayComeSilently(missing map[string]string, crds *kube.Follower) bool {
	if crds.Unknown() != "" {
		return true
	}
	for crd, failure := range missing {
		if failure != "" || crds.Get(crd) != nil {
			return true
		}
	}
	return false
}

// describe lists what is missing, and the first error of checking that.
func describe(missing map[string]string) string {
	var names []string
	failure := ""
	for crd, why := range missing {
		names = append(names, crd+"/"+ocmKinds[crd].Version)
		if failure == "" || why != "" && why < failure {
			failure = why
		}
	}
	slices.Sort(names)
	text := strings.Join(names, ", ")
	if failure != "" {
		return fmt.Sprintf("%s (cannot check: %s)", text, failure)
	}
	return text
}

// waitForLease waits until the Lease of the leader election exists, but not for ever. Helm
// creates it after the Deployment, and would fail if the manager had been faster. Helm does
// not recreate a Lease that somebody has deleted, so then the manager does.
func waitForLease(ctx context.Context, live client.Reader, lease client.ObjectKey, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := func(ctx context.Context) (bool, error) {
		err := live.Get(ctx, lease, kube.Partial(leaseKind))
		return err == nil || apierrors.IsForbidden(err), nil
	}
	if err := wait.PollUntilContextCancel(ctx, leaseLook, true, look); err != nil {
		log.FromContext(ctx).Info("The Lease of the leader election does not exist yet", "lease", lease)
	}
}
