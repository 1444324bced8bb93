package node

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// objectRef names a Secret or ConfigMap in a pod's own namespace.
type objectRef struct{ kind, name string }

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

func (r objectRef) String() string { return fmt.Sprintf("%s %q", strings.ToLower(r.kind), r.name) }

// lookup returns the content of an object, or false if it does not exist.
type lookup func(objectRef) (map[string][]byte, bool)

// environment resolves the variables of a container: base, overridden by envFrom, overridden by env.
// Errors name the missing object or key, as a kubelet's do.
func environment(
	pod *corev1.Pod, container *corev1.Container, base map[string]string, get lookup,
) (map[string]string, error) {
	vars := map[string]string{}
	for _, from := range container.EnvFrom {
		if err := addAll(vars, from, get); err != nil {
			return nil, err
		}
	}
	for _, variable := range container.Env {
		value, set, err := variableValue(pod, container, variable, vars, base, get)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if set {
			vars[variable.Name] = value
		}
	}
	for name, value := range base {
		if _, set := vars[name]; !set {
			vars[name] = value
		}
	}
	return vars, nil
}

func addAll(vars map[string]string, from corev1.EnvFromSource, get lookup) error {
	var ref objectRef
	var optional *bool
	switch {
	case from.SecretRef != nil:
		ref, optional = objectRef{kindSecret, from.SecretRef.Name}, from.SecretRef.Optional
	case from.ConfigMapRef != nil:
		ref, optional = objectRef{kindConfigMap, from.ConfigMapRef.Name}, from.ConfigMapRef.Optional
	default:
		return nil
	}
	data, found := get(ref)
	if !found && !isTrue(optional) {
		return fmt.Errorf("%s not found", ref)
	}
	for key, value := range data {
		if name := from.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
			vars[name] = string(value)
		}
	}
	return nil
}

func variableValue(
	pod *corev1.Pod, container *corev1.Container, variable corev1.EnvVar, vars, base map[string]string, get lookup,
) (string, bool, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return expand(variable.Value, vars, base), true, nil
	case from.FieldRef != nil:
		value, err := fieldValue(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := resourceValue(pod, container, from.ResourceFieldRef)
		return value, true, err
	case from.SecretKeyRef != nil:
		return keyValue(objectRef{kindSecret, from.SecretKeyRef.Name}, from.SecretKeyRef.Key, from.SecretKeyRef.Optional, get)
	case from.ConfigMapKeyRef != nil:
		return keyValue(
			objectRef{kindConfigMap, from.ConfigMapKeyRef.Name}, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional, get,
		)
	default:
		return "", false, fmt.Errorf("a source the process node does not know")
	}
}

func keyValue(ref objectRef, key string, optional *bool, get lookup) (string, bool, error) {
	data, found := get(ref)
	if value, has := data[key]; has {
		return string(value), true, nil
	}
	switch {
	case isTrue(optional):
		return "", false, nil
	case !found:
		return "", false, fmt.Errorf("%s not found", ref)
	default:
		return "", false, fmt.Errorf("couldn't find key %s in %s", key, ref)
	}
}

// expand replaces $(NAME) by the variable's value, first in vars, then in base; an unknown name is
// left as it is and $$ is a literal $.
func expand(text string, scopes ...map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		end := strings.IndexByte(rest, ')')
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "$(") && end > 0:
			out.WriteString(variable(rest[2:end], rest[:end+1], scopes))
			i += end
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

func variable(name, literal string, scopes []map[string]string) string {
	for _, scope := range scopes {
		if value, set := scope[name]; set {
			return value
		}
	}
	return literal
}

// fieldValue resolves a downward API path. The pod's status must already have its addresses.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	if name, key, isKey := strings.Cut(strings.TrimSuffix(path, "']"), "['"); isKey {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	default:
		return "", fmt.Errorf("the process node does not know the field %s", path)
	}
}

func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceValue resolves limits and requests. As with a kubelet, the default is the node's capacity.
func resourceValue(pod *corev1.Pod, container *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == ref.ContainerName {
			container = &pod.Spec.Containers[i]
		}
	}
	list, name, _ := strings.Cut(ref.Resource, ".")
	resources := map[string]corev1.ResourceList{
		"limits":   container.Resources.Limits,
		"requests": container.Resources.Requests,
	}
	given, known := resources[list]
	if !known {
		return "", fmt.Errorf("the process node does not know the resource %s", ref.Resource)
	}
	quantity, set := given[corev1.ResourceName(name)]
	if !set && list == "limits" {
		quantity = capacity()[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return ceilDiv(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return ceilDiv(quantity.Value(), divisor.Value()), nil
}

func ceilDiv(a, b int64) string { return strconv.FormatInt((a+b-1)/b, 10) }

func isTrue(b *bool) bool { return b != nil && *b }

// assignments returns the variables as NAME=value, for a process.
func assignments(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// commandLine returns the container's command and arguments with $(NAME) replaced.
func commandLine(container *corev1.Container, vars map[string]string) []string {
	var out []string
	for _, word := range append(slices.Clone(container.Command), container.Args...) {
		out = append(out, expand(word, vars))
	}
	return out
}
