package addon

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	worktyped "open-cluster-management.io/api/client/work/clientset/versioned/typed/work/v1"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// workWriter is the framework's client of ManifestWorks. What it writes gets the
// conditionRules that belong to the agent in it. The framework itself has the same rules
// for all clusters, and in a rollout clusters have different agents.
//
// The rules are written whenever the manifests are, and never by themselves: a new version
// of the manager changes no ManifestWork.
type workWriter struct {
	workclient.Interface
	cached worklisters.ManifestWorkLister // in the form that WorkTrimmer gives them
}

// WorkV1 implements workclient.Interface.
func (w workWriter) WorkV1() worktyped.WorkV1Interface {
	return groupWriter{w.Interface.WorkV1(), w.cached}
}

type groupWriter struct {
	worktyped.WorkV1Interface
	cached worklisters.ManifestWorkLister
}

// ManifestWorks implements worktyped.WorkV1Interface.
func (g groupWriter) ManifestWorks(namespace string) worktyped.ManifestWorkInterface {
	return namespaceWriter{g.WorkV1Interface.ManifestWorks(namespace), g.cached.ManifestWorks(namespace)}
}

type namespaceWriter struct {
	worktyped.ManifestWorkInterface
	cached worklisters.ManifestWorkNamespaceLister
}

// Create implements worktyped.ManifestWorkInterface.
func (n namespaceWriter) Create(
	ctx context.Context, work *workv1.ManifestWork, opts metav1.CreateOptions,
) (*workv1.ManifestWork, error) {
	ruled := *work
	var err error
	ruled.Spec.ManifestConfigs, err = manifests.WithRules(work.Spec.ManifestConfigs, work.Spec.Workload.Manifests)
	if err != nil {
		return nil, err
	}
	return n.ManifestWorkInterface.Create(ctx, &ruled, opts)
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
	cached, err := n.cached.Get(name)
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
