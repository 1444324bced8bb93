package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// Deployed holds the ManifestWorks with which an agent is deployed, as trimmed by WorkTrimmer.
// At most one of them is on a hosting cluster.
type Deployed []*workv1.ManifestWork

// Host returns the cluster on which the agent runs if that is not its own.
func (d Deployed) Host() string {
	if at := d.onHost(); at >= 0 {
		return d[at].Namespace
	}
	return ""
}

func (d Deployed) onHost() int {
	return slices.IndexFunc(d, func(work *workv1.ManifestWork) bool { return ownwork.GuestOf(work) != "" })
}

// Namespace returns the agent's namespace, or "" if there is no agent.
func (d Deployed) Namespace() string {
	if manifest := d.agent(); manifest != nil {
		return manifest.Object.(metav1.Object).GetNamespace()
	}
	return ""
}

// HasAgent reports whether there is an agent.
func (d Deployed) HasAgent() bool { return d.agent() != nil }

// agent returns the agent's Deployment, or nil. That of a hosted agent is on its host: the
// content of a cluster's own ManifestWork must not affect another cluster.
func (d Deployed) agent() *workv1.Manifest {
	if at := d.onHost(); at >= 0 {
		d = d[at : at+1]
	}
	for _, work := range d {
		for i := range work.Spec.Workload.Manifests {
			manifest := &work.Spec.Workload.Manifests[i]
			identity, ok := manifest.Object.(*metav1.PartialObjectMetadata)
			if ok && identity.Kind == "Deployment" && identity.Name == AgentName {
				return manifest
			}
		}
	}
	return nil
}

// Carries reports whether the works were written for these configurations, hashes by name.
// The framework records in every work the configurations to which the addon refers at that
// time, and Open Cluster Management considers these applied.
func (d Deployed) Carries(hashes map[string]string) bool {
	for _, work := range d {
		var noted map[string]string
		if note, ok := work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]; ok {
			if err := json.Unmarshal([]byte(note), &noted); err != nil {
				return false
			}
		}
		if !maps.Equal(noted, hashes) {
			return false
		}
	}
	return true
}

// RefusedBySpoke returns what the spoke refused to apply, and why, or "".
func (d Deployed) RefusedBySpoke() string {
	for _, work := range d {
		for _, manifest := range work.Status.ResourceStatus.Manifests {
			if why := ownwork.Refusal(manifest.Conditions); why != "" {
				what := manifest.ResourceMeta
				return fmt.Sprintf("%s %s: %s", what.Resource,
					strings.TrimPrefix(what.Namespace+"/"+what.Name, "/"), why)
			}
		}
	}
	return ""
}

// manifests is Renderers.Held.
func (d Deployed) manifests(t templates, addonUID string) ([]runtime.Object, error) {
	agent := d.agent()
	if agent == nil {
		return nil, nil
	}
	deployment := &appsv1.Deployment{}
	if err := decodeManifest(agent.Raw, deployment); err != nil {
		return nil, err
	}
	values, err := valuesOf(deployment)
	if err != nil {
		return nil, err
	}
	values.Hosted = d.Host() != ""
	expected, err := t.expected(values)
	if err != nil {
		return nil, err
	}
	var held []runtime.Object
	for _, work := range d {
		for _, inWork := range work.Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(inWork.Raw); err != nil {
				return nil, err
			}
			if values.Hosted && !expected[expectedOf(object, ownwork.GuestOf(work) != "")] {
				continue
			}
			held = append(held, newManifest(object, inWork.Raw))
		}
	}
	jobs, err := t.jobs(values)
	if err != nil {
		return nil, err
	}
	rendered, err := jobs.render(values.of("", addonUID))
	if err != nil {
		return nil, err
	}
	for _, job := range rendered {
		held = append(held, job)
	}
	return held, nil
}

// IsDeployedFor reports whether a ManifestWork on a hosting cluster deploys the agent of
// this installation of an addon. It has no owner, because it is in another namespace.
func IsDeployedFor(work *workv1.ManifestWork, addon *addonv1beta1.ManagedClusterAddOn) bool {
	there := Deployed{work}
	agent := there.agent()
	return agent != nil && there.Namespace() == ownwork.HostedNamespace(addon.Namespace) && isOfAddon(*agent, addon)
}

// RunsFor reports whether a ManifestWork runs the agent, or its clean-up, of this installation
// of an addon.
func RunsFor(work *workv1.ManifestWork, addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(work.Spec.Workload.Manifests, func(manifest workv1.Manifest) bool {
		return isOfAddon(manifest, addon)
	})
}

// isOfAddon searches the JSON, because the works of all clusters are read for each of their events.
func isOfAddon(manifest workv1.Manifest, addon *addonv1beta1.ManagedClusterAddOn) bool {
	return bytes.Contains(manifest.Raw, []byte(`"--addon-uid=`+string(addon.UID)+`"`))
}

// expectedManifest identifies a manifest that may be held on one of two clusters.
type expectedManifest struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	onHost          bool
}

// expectedOf identifies a manifest. For one that belongs on another cluster than its
// ManifestWork's, the result is never expected.
func expectedOf(object *unstructured.Unstructured, onHost bool) expectedManifest {
	if hosted, sound := isHosted(object); !sound || hosted != onHost {
		return expectedManifest{}
	}
	return expectedManifest{object.GroupVersionKind(), object.GetNamespace(), object.GetName(), onHost}
}

// expected returns the manifests of a hosted agent. Each of the two clusters may change its
// ManifestWork, and such changes must not reach the other one.
func (t templates) expected(v Values) (map[expectedManifest]bool, error) {
	if !v.Hosted {
		return nil, nil
	}
	v.NetworkPolicy = &NetworkPolicy{} // they may be there
	rendered, err := t.known(v).render(v)
	if err != nil {
		return nil, err
	}
	all := map[expectedManifest]bool{}
	for _, object := range rendered {
		hosted, _ := isHosted(object)
		all[expectedOf(object, hosted)] = true
	}
	return all, nil
}

// jobs returns the part of a template that runs when the addon is removed.
func (t template) jobs() template {
	return slices.DeleteFunc(slices.Clone(t), func(object runtime.Object) bool {
		_, isJob := object.(*batchv1.Job)
		return !isJob
	})
}

// valuesOf returns the values with which an agent was deployed, restricted to those that the
// clean-up Job uses, too.
func valuesOf(agent *appsv1.Deployment) (Values, error) {
	pod := agent.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return Values{}, fmt.Errorf("the agent's Deployment has no container")
	}
	container := pod.Containers[0]
	values := Values{
		Manifests:        revisionOf(agent),
		InstallNamespace: agent.Namespace,
		Image:            container.Image,
		PullPolicy:       string(container.ImagePullPolicy),
		NodeSelector:     pod.NodeSelector,
		Tolerations:      pod.Tolerations,
		CleanupResources: cleanupResources(agent),
		Proxy: Proxy{
			HTTP:     variable(container, variableHTTPProxy),
			HTTPS:    variable(container, variableHTTPSProxy),
			No:       variable(container, variableNoProxy),
			CABundle: variable(container, contract.VariableProxyCA),
		},
	}
	if security := pod.SecurityContext; security != nil {
		values.Users = PodUsers{security.RunAsUser, security.RunAsGroup, security.FSGroup}
	}
	for _, secret := range pod.ImagePullSecrets {
		values.PullSecrets = append(values.PullSecrets, secret.Name)
	}
	for _, argument := range container.Args {
		if level, ok := strings.CutPrefix(argument, "-v="); ok {
			values.LogLevel, _ = strconv.Atoi(level) // 0 if it is not a number
		}
		values.JSONLogs = values.JSONLogs || argument == argumentJSONLogs
	}
	return values, nil
}

// annotationCleanupResources is on the agent's Deployment if the clean-up Job has its own
// resources: in JSON, as in the Job, which does not exist yet.
const annotationCleanupResources = contract.KeyPrefix + "cleanup-resources"

// noteCleanupResources records the clean-up Job's resources, if they differ from those in
// its manifest, for cleanupResources.
func noteCleanupResources(agent *appsv1.Deployment, resources *corev1.ResourceRequirements) error {
	if resources == nil {
		return nil
	}
	note, err := json.Marshal(resources)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&agent.ObjectMeta, annotationCleanupResources, string(note))
	return nil
}

// cleanupResources returns what noteCleanupResources recorded, or nil. An unreadable record
// is ignored, because the removal of an addon must not wait for it.
func cleanupResources(agent *appsv1.Deployment) *corev1.ResourceRequirements {
	resources := &corev1.ResourceRequirements{}
	if err := json.Unmarshal([]byte(agent.Annotations[annotationCleanupResources]), resources); err != nil {
		return nil
	}
	return resources
}

// revisionOf returns the manifest revision of an agent's Deployment. The first revision is
// not recorded in it.
func revisionOf(agent *appsv1.Deployment) string {
	return cmp.Or(agent.Annotations[contract.AnnotationManifests], "1")
}

// variable returns the value of a proxy's environment variable, as it was before
// Proxy.variables.
func variable(container corev1.Container, name string) string {
	at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if at < 0 {
		return ""
	}
	return strings.ReplaceAll(container.Env[at].Value, "$$", "$")
}

func decodeManifest(raw []byte, into any) error {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
