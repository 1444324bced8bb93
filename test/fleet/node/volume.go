package node

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// file is one file of a volume.
type file struct {
	data []byte
	mode fs.FileMode
}

// payload is the content of a volume by path relative to the mount.
type payload map[string]file

// tokenSource returns a token for one projection. It looks up tokens issued before, which keeps
// volumePayload pure.
type tokenSource func(*corev1.ServiceAccountTokenProjection) ([]byte, error)

const defaultMode = fs.FileMode(0o644)

// references lists every Secret and ConfigMap that the pod's volumes and variables name, once each.
func references(pod *corev1.Pod) []objectRef {
	var refs []objectRef
	seen := map[objectRef]bool{}
	add := func(kind, name string) {
		if ref := (objectRef{kind, name}); name != "" && !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	for _, volume := range pod.Spec.Volumes {
		for _, source := range projections(volume) {
			if source.Secret != nil {
				add(kindSecret, source.Secret.Name)
			}
			if source.ConfigMap != nil {
				add(kindConfigMap, source.ConfigMap.Name)
			}
		}
	}
	for _, container := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		for _, from := range container.EnvFrom {
			if from.SecretRef != nil {
				add(kindSecret, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				add(kindConfigMap, from.ConfigMapRef.Name)
			}
		}
		for _, variable := range container.Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				add(kindSecret, from.SecretKeyRef.Name)
			}
			if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
				add(kindConfigMap, from.ConfigMapKeyRef.Name)
			}
		}
	}
	return refs
}

// projections converts every kind of volume with API content to a list of projections.
func projections(volume corev1.Volume) []corev1.VolumeProjection {
	switch {
	case volume.Projected != nil:
		return volume.Projected.Sources
	case volume.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: volume.Secret.SecretName},
			Items:                volume.Secret.Items, Optional: volume.Secret.Optional,
		}}}
	case volume.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: volume.ConfigMap.LocalObjectReference,
			Items:                volume.ConfigMap.Items, Optional: volume.ConfigMap.Optional,
		}}}
	case volume.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: volume.DownwardAPI.Items}}}
	default:
		return nil
	}
}

func volumeMode(volume corev1.Volume) fs.FileMode {
	var mode *int32
	switch {
	case volume.Projected != nil:
		mode = volume.Projected.DefaultMode
	case volume.Secret != nil:
		mode = volume.Secret.DefaultMode
	case volume.ConfigMap != nil:
		mode = volume.ConfigMap.DefaultMode
	case volume.DownwardAPI != nil:
		mode = volume.DownwardAPI.DefaultMode
	}
	return orMode(mode, defaultMode)
}

// volumePayload computes the files of a volume. An error says, as a kubelet does, what is missing;
// the pod waits for it.
func volumePayload(pod *corev1.Pod, volume corev1.Volume, get lookup, token tokenSource) (payload, error) {
	out := payload{}
	mode := volumeMode(volume)
	for _, source := range projections(volume) {
		var err error
		switch {
		case source.Secret != nil:
			err = addObject(
				out, objectRef{kindSecret, source.Secret.Name}, source.Secret.Items, source.Secret.Optional, mode, get,
			)
		case source.ConfigMap != nil:
			err = addObject(
				out, objectRef{kindConfigMap, source.ConfigMap.Name}, source.ConfigMap.Items, source.ConfigMap.Optional, mode, get,
			)
		case source.DownwardAPI != nil:
			err = addFields(out, pod, source.DownwardAPI.Items, mode)
		case source.ServiceAccountToken != nil:
			err = addToken(out, source.ServiceAccountToken, mode, token)
		default:
			err = fmt.Errorf("volume %s has a source the process node does not know", volume.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func addObject(
	out payload, ref objectRef, items []corev1.KeyToPath, optional *bool, mode fs.FileMode, get lookup,
) error {
	data, found := get(ref)
	if !found && !isTrue(optional) {
		return fmt.Errorf("%s not found", ref)
	}
	if len(items) == 0 {
		for key, value := range data {
			out[key] = file{value, mode}
		}
		return nil
	}
	for _, item := range items {
		value, has := data[item.Key]
		if !has && isTrue(optional) {
			continue
		}
		if !has {
			return fmt.Errorf("%s has no key %s", ref, item.Key)
		}
		if err := add(out, item.Path, file{value, orMode(item.Mode, mode)}); err != nil {
			return err
		}
	}
	return nil
}

func addFields(out payload, pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode fs.FileMode) error {
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = fieldValue(pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceValue(pod, &corev1.Container{}, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		if err := add(out, item.Path, file{[]byte(value), orMode(item.Mode, mode)}); err != nil {
			return err
		}
	}
	return nil
}

func addToken(
	out payload, projection *corev1.ServiceAccountTokenProjection, mode fs.FileMode, token tokenSource,
) error {
	value, err := token(projection)
	if err != nil {
		return err
	}
	return add(out, projection.Path, file{value, mode})
}

func add(out payload, path string, f file) error {
	clean := filepath.Clean(path)
	if filepath.IsAbs(clean) || clean == "." || strings.HasPrefix(clean, "..") {
		return fmt.Errorf("path %q leaves its volume", path)
	}
	out[clean] = f
	return nil
}

func orMode(mode *int32, fallback fs.FileMode) fs.FileMode {
	if mode == nil {
		return fallback
	}
	return fs.FileMode(*mode).Perm() //nolint:gosec // the API server accepts only 0 to 0777
}

// unsupported names the first feature of the pod that the process node does not support. Such a pod is
// refused, rather than run differently from what it says.
func unsupported(pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.EmptyDir == nil && volume.Projected == nil && volume.Secret == nil && volume.ConfigMap == nil &&
			volume.DownwardAPI == nil && volume.Image == nil {
			return fmt.Sprintf(
				"the process node cannot mount volume %s: "+
					"it knows secret, configMap, emptyDir, downwardAPI, projected and image",
				volume.Name,
			)
		}
	}
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil {
			return fmt.Sprintf("the process node has no sidecars: init container %s has a restartPolicy", container.Name)
		}
	}
	for _, container := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		if container.Lifecycle != nil {
			return fmt.Sprintf("the process node has no lifecycle hooks: container %s has one", container.Name)
		}
		if len(container.Command) == 0 {
			return fmt.Sprintf("the process node knows no entrypoint of an image: container %s needs a command", container.Name)
		}
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if probe != nil && probe.GRPC != nil {
				return fmt.Sprintf("the process node has no grpc probes: container %s has one", container.Name)
			}
		}
	}
	return ""
}
