package addon

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	worktyped "open-cluster-management.io/api/client/work/clientset/versioned/typed/work/v1"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// workWriter is the framework's client of ManifestWorks. What it writes gets the
// conditionRules that belong to the agent in it. The framework itself has the same rules
// for all clusters, and in a rollout clusters have different agents. It creates none for an
// addon that is gone, which the cache may show as being deleted for minutes (package stored):
// without a clean-up to follow, the agent would come back to the spoke for a moment.
//
// The rules are written whenever the manifests are, and never by themselves: a new version
// of the manager changes no ManifestWork.
type workWriter struct {
	workclient.Interface
	cached   worklisters.ManifestWorkLister // in the form that WorkTrimmer gives them
	observed observed
	live     client.Reader
}

// WorkV1 implements workclient.Interface.
func (w workWriter) WorkV1() worktyped.WorkV1Interface {
	return groupWriter{w.Interface.WorkV1(), w}
}

type groupWriter struct {
	worktyped.WorkV1Interface
	of workWriter
}

// ManifestWorks implements worktyped.WorkV1Interface.
func (g groupWriter) ManifestWorks(namespace string) worktyped.ManifestWorkInterface {
	return namespaceWriter{g.WorkV1Interface.ManifestWorks(namespace), g.of, namespace}
}

type namespaceWriter struct {
	worktyped.ManifestWorkInterface
	of        workWriter
	namespace string
}

// Create implements worktyped.ManifestWorkInterface.
func (n namespaceWriter) Create(
	ctx context.Context, work *workv1.ManifestWork, opts metav1.CreateOptions,
) (*workv1.ManifestWork, error) {
	if err := n.checkAddon(ctx, work); err != nil {
		return nil, err
	}
	ruled := *work
	var err error
	ruled.Spec.ManifestConfigs, err = manifests.WithRules(work.Spec.ManifestConfigs, work.Spec.Workload.Manifests)
	if err != nil {
		return nil, err
	}
	return n.ManifestWorkInterface.Create(ctx, &ruled, opts)
}

// checkAddon returns a conflict, after which the caller waits for its cache, if the addon for which a
// ManifestWork is to be created is being deleted according to the cache, and gone, or if the cache has lost it
// since the caller read it.
func (n namespaceWriter) checkAddon(ctx context.Context, work *workv1.ManifestWork) error {
	cluster := ownwork.ClusterOf(work)
	resource := addonv1beta1.Resource("managedclusteraddons")
	gone := apierrors.NewConflict(resource, queueKey(cluster), errors.New("it is gone"))
	cached := n.of.observed.addon(cluster)
	switch {
	case cached == nil:
		return gone
	case cached.DeletionTimestamp == nil:
		return nil
	}
	live, err := kube.Get(ctx, n.of.live, client.ObjectKeyFromObject(cached), &addonv1beta1.ManagedClusterAddOn{})
	if err == nil && (live == nil || live.UID != cached.UID) {
		return gone
	}
	return err
}

// Patch implements worktyped.ManifestWorkInterface. The framework sends merge patches only.
func (n namespaceWriter) Patch(
	ctx context.Context, name string, patchType types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string,
) (*workv1.ManifestWork, error) {
	if patchType == types.MergePatchType && len(subresources) == 0 {
		ruled, err := n.withRules(name, data)
		if err != nil {
			return nil, err
		}
		data = ruled
	}
	return n.ManifestWorkInterface.Patch(ctx, name, patchType, data, opts, subresources...)
}

// withRules adds the rules to a merge patch that changes manifests or their options. A
// list is replaced as a whole; one that the patch does not contain stays as it is cached.
func (n namespaceWriter) withRules(name string, data []byte) ([]byte, error) {
	var patched workv1.ManifestWork
	if err := json.Unmarshal(data, &patched); err != nil {
		return nil, err
	}
	options, deployed := patched.Spec.ManifestConfigs, patched.Spec.Workload.Manifests
	if options == nil && deployed == nil {
		return data, nil
	}
	cached, err := n.of.cached.ManifestWorks(n.namespace).Get(name)
	if err != nil {
		return nil, err
	}
	if options == nil {
		options = cached.Spec.ManifestConfigs
	}
	if deployed == nil {
		deployed = cached.Spec.Workload.Manifests
	}
	if options, err = manifests.WithRules(options, deployed); err != nil {
		return nil, err
	}
	var patch, spec map[string]json.RawMessage
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch["spec"], &spec); err != nil {
		return nil, err
	}
	if spec["manifestConfigs"], err = json.Marshal(options); err != nil {
		return nil, err
	}
	if patch["spec"], err = json.Marshal(spec); err != nil {
		return nil, err
	}
	return json.Marshal(patch)
}
