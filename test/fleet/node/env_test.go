package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func lookupIn(contents map[objectRef]map[string]string) lookup {
	return func(ref objectRef) (map[string][]byte, bool) {
		content, found := contents[ref]
		data := map[string][]byte{}
		for key, value := range content {
			data[key] = []byte(value)
		}
		return data, found
	}
}

func examplePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "agent-0", UID: "uid-1",
			Labels: map[string]string{"app": "agent", "tier": "a\"b"}, Annotations: map[string]string{"note": "x"},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "agent"},
		Status: corev1.PodStatus{PodIP: "127.20.1.1", HostIP: "127.0.0.1"},
	}
}

func TestEnvironment(t *testing.T) {
	objects := lookupIn(map[objectRef]map[string]string{
		{kindSecret, "creds"}:       {"user": "alice", "not-a-name!": "x"},
		{kindConfigMap, "settings"}: {"LEVEL": "1", "user": "bob"},
	})
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{
			Name:      name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
		}
	}
	secretKey := func(name, object, key string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key, Optional: optional,
		}}}
	}
	fromSecret := func(name, prefix string, optional *bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{
			Prefix: prefix,
			SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name},
				Optional:             optional,
			},
		}
	}
	fromConfigMap := func(name string) corev1.EnvFromSource {
		return corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}
	}
	for name, tc := range map[string]struct {
		from []corev1.EnvFromSource
		env  []corev1.EnvVar
		base map[string]string
		want map[string]string
		err  string
	}{
		"fields are resolved": {
			env: []corev1.EnvVar{
				field("A", "metadata.name"), field("B", "metadata.namespace"),
				field("C", "metadata.uid"), field("D", "metadata.labels['app']"),
				field("E", "metadata.annotations['note']"), field("F", "spec.nodeName"), field("G", "spec.serviceAccountName"),
				field("H", "status.podIP"), field("I", "status.hostIP"),
			},
			want: map[string]string{
				"A": "agent-0", "B": "ns", "C": "uid-1", "D": "agent", "E": "x", "F": "node-1", "G": "agent", "H": "127.20.1.1",
				"I": "127.0.0.1",
			},
		},
		"an unknown field, refused": {
			env: []corev1.EnvVar{field("A", "spec.nothing")},
			err: "variable A: the process node does not know the field spec.nothing",
		},
		"variables refer to earlier ones and to the base, not to later ones": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)$(HOST)$(C)"}, {Name: "C", Value: "3"}},
			base: map[string]string{"HOST": "h"},
			want: map[string]string{"A": "1", "B": "1h$(C)", "C": "3", "HOST": "h"},
		},
		"the base gives way": {
			env:  []corev1.EnvVar{{Name: "HOST", Value: "mine"}},
			base: map[string]string{"HOST": "h"},
			want: map[string]string{"HOST": "mine"},
		},
		"whole objects: later wins, env wins over both, keys that are no names are left out": {
			from: []corev1.EnvFromSource{
				fromConfigMap("settings"), fromSecret("creds", "", nil), fromSecret("creds", "P_", nil),
			},
			env:  []corev1.EnvVar{{Name: "LEVEL", Value: "2"}},
			want: map[string]string{"LEVEL": "2", "user": "alice", "P_user": "alice"},
		},
		"a key of a Secret": {
			env:  []corev1.EnvVar{secretKey("A", "creds", "user", nil)},
			want: map[string]string{"A": "alice"},
		},
		"an optional key that is missing, not set": {
			env:  []corev1.EnvVar{secretKey("A", "creds", "none", ptr.To(true))},
			want: map[string]string{},
		},
		"an optional Secret that is missing": {
			env:  []corev1.EnvVar{secretKey("A", "none", "k", ptr.To(true))},
			from: []corev1.EnvFromSource{fromSecret("none", "", ptr.To(true))},
			want: map[string]string{},
		},
		"a key that is missing, an error": {
			env: []corev1.EnvVar{secretKey("A", "creds", "none", nil)},
			err: `variable A: couldn't find key none in secret "creds"`,
		},
		"a Secret that is missing, an error": {
			env: []corev1.EnvVar{secretKey("A", "none", "k", nil)},
			err: `variable A: secret "none" not found`,
		},
		"a whole object that is missing, an error": {
			from: []corev1.EnvFromSource{fromConfigMap("none")},
			err:  `configmap "none" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := environment(examplePod(), &corev1.Container{EnvFrom: tc.from, Env: tc.env}, tc.base, objects)
			if diff := cmp.Diff(tc.want, got); diff != "" || message(err) != tc.err {
				t.Errorf("%s error %q, want %q", diff, message(err), tc.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "EMPTY": ""}
	for name, tc := range map[string]struct{ text, want string }{
		"a known name":                  {"x$(A)y", "x1y"},
		"an empty value":                {"x$(EMPTY)y", "xy"},
		"an unknown name is kept":       {"x$(B)y", "x$(B)y"},
		"an escaped reference":          {"$$(A)", "$(A)"},
		"an escaped dollar before one":  {"$$$(A)", "$1"},
		"never closed":                  {"$(A", "$(A"},
		"a lone dollar":                 {"a$", "a$"},
		"a shell variable is no matter": {"${A}", "${A}"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, expand(tc.text, vars)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResourceValue(t *testing.T) {
	container := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("1500m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
	}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	for name, tc := range map[string]struct {
		resource, divisor, want, err string
	}{
		"cores are rounded up":   {resource: "limits.cpu", want: "2"},
		"millicores":             {resource: "limits.cpu", divisor: "1m", want: "1500"},
		"bytes":                  {resource: "limits.memory", want: "67108864"},
		"mebibytes":              {resource: "requests.memory", divisor: "1Mi", want: "32"},
		"no request is none":     {resource: "requests.cpu", want: "0"},
		"no limit is the node's": {resource: "limits.ephemeral-storage", divisor: "1Gi", want: "100"},
		"anything else, refused": {
			resource: "claims.gpu",
			err:      "the process node does not know the resource claims.gpu",
		},
		"named from another container": {resource: "limits.memory", divisor: "1Mi", want: "64"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := &corev1.ResourceFieldSelector{ContainerName: "main", Resource: tc.resource}
			if tc.divisor != "" {
				ref.Divisor = resource.MustParse(tc.divisor)
			}
			got, err := resourceValue(pod, &corev1.Container{}, ref)
			if got != tc.want || message(err) != tc.err {
				t.Errorf("got %q, %q; want %q, %q", got, message(err), tc.want, tc.err)
			}
		})
	}
}

func TestCommandLineIsExpandedAfterTheEnvironment(t *testing.T) {
	got := commandLine(
		&corev1.Container{Command: []string{"/agent"}, Args: []string{"run", "--address=$(POD_IP):8081", "$(NONE)"}},
		map[string]string{"POD_IP": "127.20.1.1"},
	)
	if diff := cmp.Diff([]string{"/agent", "run", "--address=127.20.1.1:8081", "$(NONE)"}, got); diff != "" {
		t.Error(diff)
	}
}
