package manifests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Revisions are the manifest revisions that this manager can render.
func Revisions() []string { return []string{embedded.Previous, embedded.Revision} }

// templates holds those of all manifest revisions.
type templates map[string]template

func newTemplates() (templates, error) {
	all := templates{}
	for _, revision := range Revisions() {
		decoded, err := newTemplate(revision)
		if err != nil {
			return nil, err
		}
		all[revision] = decoded
	}
	return all, nil
}

// of returns the template of a revision. A later manager's, which is on the spoke after
// a rollback, is unknown: the present one replaces it.
func (t templates) of(v Values) template {
	if known, ok := t[v.Manifests]; ok {
		return known
	}
	return t[embedded.Revision]
}

// jobs returns the part of a template that runs when the addon is removed.
func (t templates) jobs(v Values) (template, error) {
	jobs := slices.DeleteFunc(slices.Clone(t.of(v)), func(object runtime.Object) bool {
		_, isJob := object.(*batchv1.Job)
		return !isJob
	})
	if len(jobs) == 0 {
		return nil, fmt.Errorf("the manifests of revision %q have no clean-up Job", v.Manifests)
	}
	return jobs, nil
}

// template is the spoke's manifests without the values, decoded.
type template []runtime.Object

// newTemplate decodes every manifest, in the order of the file names. Unknown fields
// are an error.
func newTemplate(revision string) (template, error) {
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	files, err := embedded.Of(revision)
	if err != nil {
		return nil, err
	}
	var objects template
	for _, file := range files {
		decoded, err := decodeAll(decoder, file.Content)
		if err != nil {
			return nil, fmt.Errorf("manifest %s of revision %s: %w", file.Name, revision, err)
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// render returns the manifests of one spoke, in the template's order. Equal values
// yield equal objects, so that a ManifestWork is written only when something changes.
func (t template) render(v Values) ([]*unstructured.Unstructured, error) {
	rendered := make([]*unstructured.Unstructured, 0, len(t))
	for _, original := range t {
		if _, isPolicy := original.(*networkingv1.NetworkPolicy); isPolicy && v.NetworkPolicy == nil {
			continue // these values do not ask for it
		}
		object := original.DeepCopyObject()
		if err := v.fill(object); err != nil {
			return nil, err
		}
		for _, placed := range v.split(object) {
			plain, err := withoutStatus(placed)
			if err != nil {
				return nil, err
			}
			rendered = append(rendered, plain)
		}
	}
	return rendered, nil
}

// fill sets the values in one object. An unexpected kind is an error, because it would be
// deployed without a namespace.
func (v Values) fill(object runtime.Object) error {
	switch o := object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return nil
	case *corev1.Namespace:
		o.Name = v.InstallNamespace
		return nil
	case *corev1.ConfigMap, *corev1.ServiceAccount, *rbacv1.Role:
		o.(metav1.Object).SetNamespace(v.InstallNamespace)
	case *rbacv1.RoleBinding:
		o.Namespace = v.InstallNamespace
		v.fillSubjects(o.Subjects)
	case *rbacv1.ClusterRole:
	case *rbacv1.ClusterRoleBinding:
		v.fillSubjects(o.Subjects)
	case *networkingv1.NetworkPolicy:
		o.Namespace = v.InstallNamespace
		o.Spec.Egress = v.egress()
	case *appsv1.Deployment:
		return v.fillAgent(o)
	case *batchv1.Job:
		o.Namespace = v.InstallNamespace
		v.fillPod(&o.Spec.Template.Spec, v.CleanupResources)
	default:
		return fmt.Errorf("the manifests contain a %T, which is not expected on a spoke", object)
	}
	mark(object.(metav1.Object))
	return nil
}

func (v Values) fillAgent(agent *appsv1.Deployment) error {
	if _, noted := agent.Annotations[contract.AnnotationContent]; noted {
		ofAnyCluster := agent.DeepCopy()
		common := v.of("", "")
		if v.Hosted {
			common = common.OnHost()
		}
		common.fillAgentPod(ofAnyCluster)
		content, err := json.Marshal(ofAnyCluster.Spec)
		if err != nil {
			return err
		}
		hash := sha256.Sum256(content)
		agent.Annotations[contract.AnnotationContent] = hex.EncodeToString(hash[:8])
	}
	agent.Namespace = v.InstallNamespace
	v.fillAgentPod(agent)
	mark(agent)
	return noteCleanupResources(agent, v.CleanupResources)
}

func (v Values) fillAgentPod(agent *appsv1.Deployment) {
	pod := &agent.Spec.Template.Spec
	args := []string{"--cluster-name=" + v.ClusterName, fmt.Sprintf("--claim-limit=%d", v.ClaimLimit)}
	if len(v.ReservedProperties) > 0 { // agents of earlier versions do not know the flag
		args = append(args, "--reserved-properties="+strings.Join(v.ReservedProperties, ","))
	}
	v.fillPod(pod, v.AgentResources, args...)
	if v.Hosted {
		hostPod(pod, "--hosted")
	}
}

func (v Values) fillSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		subjects[i].Namespace = v.InstallNamespace
	}
}

func (v Values) fillPod(pod *corev1.PodSpec, resources *corev1.ResourceRequirements, args ...string) {
	pod.NodeSelector, pod.Tolerations = v.NodeSelector, v.Tolerations
	security := pod.SecurityContext
	security.RunAsUser, security.RunAsGroup, security.FSGroup = v.Users.RunAsUser, v.Users.RunAsGroup, v.Users.FSGroup
	c := &pod.Containers[0]
	for _, secret := range v.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	c.Image = v.Image
	c.ImagePullPolicy = corev1.PullPolicy(v.PullPolicy)
	c.Args = append(c.Args, args...)
	c.Args = append(c.Args,
		"--addon-uid="+v.AddonUID,
		"--install-namespace="+v.InstallNamespace,
		fmt.Sprintf("-v=%d", v.LogLevel))
	if v.JSONLogs {
		c.Args = append(c.Args, argumentJSONLogs)
	}
	c.Env = append(c.Env, v.Proxy.variables()...)
	if resources != nil {
		c.Resources = *resources
	}
}

const argumentJSONLogs = "--log-format=json"

// The environment variables of a proxy. Go's HTTP client reads the first three, the agent
// itself the last one.
const (
	variableHTTPProxy  = "HTTP_PROXY"
	variableHTTPSProxy = "HTTPS_PROXY"
	variableNoProxy    = "NO_PROXY"
)

// variables returns the environment variables of a container. Kubernetes expands $(NAME) in
// their values and reduces two dollar signs to one, so each is doubled.
func (p Proxy) variables() []corev1.EnvVar {
	var variables []corev1.EnvVar
	for _, variable := range []corev1.EnvVar{
		{Name: variableHTTPProxy, Value: p.HTTP},
		{Name: variableHTTPSProxy, Value: p.HTTPS},
		{Name: variableNoProxy, Value: p.No},
		{Name: contract.VariableProxyCA, Value: p.CABundle},
	} {
		if variable.Value != "" {
			variable.Value = strings.ReplaceAll(variable.Value, "$", "$$")
			variables = append(variables, variable)
		}
	}
	return variables
}

// mark labels objects that belong to this addon alone; shared ones are not marked.
func mark(object metav1.Object) {
	object.SetLabels(labels.Merge(object.GetLabels(), labels.Set{contract.LabelManagedBy: contract.ManagedBy}))
}

// withoutStatus converts the object and drops the empty status that Go types carry.
func withoutStatus(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", object, err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(
		corev1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		apiextensionsv1.AddToScheme)
	err := kinds.AddToScheme(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), err
}

func decodeAll(decoder runtime.Decoder, data []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
