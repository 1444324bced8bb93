package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Held returns the deployed manifests and the matching clean-up Job, but never the former
// alone: the framework would conclude that an addon without a Job needs no clean-up. It
// returns nothing if there is no agent.
func (r *Renderers) Held(there Deployed, addonUID string) ([]runtime.Object, error) {
	if there.Agent == nil {
		return nil, nil
	}
	deployment := &appsv1.Deployment{}
	if err := utiljson.Unmarshal(there.Agent.Raw, deployment); err != nil {
		return nil, err
	}
	values, err := valuesOf(deployment)
	if err != nil {
		return nil, err
	}
	values.Hosted = there.Host != ""
	expected, err := r.templates.expected(values)
	if err != nil {
		return nil, err
	}
	var held []runtime.Object
	for _, work := range there.Works {
		for _, inWork := range work.Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(inWork.Raw); err != nil {
				return nil, err
			}
			if values.Hosted && !expected[expectedOf(object, work.Namespace == there.Host)] {
				continue
			}
			held = append(held, newManifest(object, inWork.Raw))
		}
	}
	jobs, err := r.templates.jobs(values)
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
	rendered, err := t.of(v).render(v)
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

// valuesOf returns the values with which an agent was deployed, restricted to those that the
// clean-up Job uses, too.
func valuesOf(agent *appsv1.Deployment) (Values, error) {
	pod := agent.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return Values{}, fmt.Errorf("the agent's Deployment has no container")
	}
	container := pod.Containers[0]
	values := Values{
		Revision: Revision{
			Manifests:        cmp.Or(agent.Annotations[contract.AnnotationManifests], "1"), // the first is not recorded
			InstallNamespace: agent.Namespace,
			Image:            container.Image,
			PullPolicy:       string(container.ImagePullPolicy),
		},
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

// variable returns the value of a proxy's environment variable, as it was before
// Proxy.variables.
func variable(container corev1.Container, name string) string {
	at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if at < 0 {
		return ""
	}
	return strings.ReplaceAll(container.Env[at].Value, "$$", "$")
}
