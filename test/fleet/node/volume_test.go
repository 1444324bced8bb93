package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestVolumePayload(t *testing.T) {
	objects := lookupIn(map[objectRef]map[string]string{
		{kindSecret, "hub"}:             {"kubeconfig": "k", "tls.crt": "c"},
		{kindConfigMap, "kube-root-ca"}: {"ca.crt": "ca"},
	})
	issue := func(p *corev1.ServiceAccountTokenProjection) ([]byte, error) {
		return []byte("token for " + p.Audience), nil
	}
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		token  tokenSource
		want   payload
		err    string
	}{
		"a Secret, all keys": {
			source: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "hub", DefaultMode: ptr.To(int32(0o400))},
			},
			want: payload{"kubeconfig": {[]byte("k"), 0o400}, "tls.crt": {[]byte("c"), 0o400}},
		},
		"a Secret, one key at a path with a mode": {
			source: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{
					SecretName: "hub",
					Items:      []corev1.KeyToPath{{Key: "tls.crt", Path: "tls/crt", Mode: ptr.To(int32(0o440))}},
				},
			},
			want: payload{"tls/crt": {[]byte("c"), 0o440}},
		},
		"a missing Secret, an error": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}},
			err:    `secret "none" not found`,
		},
		"a missing optional Secret, nothing": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none", Optional: ptr.To(true)}},
			want:   payload{},
		},
		"a missing key, an error": {
			source: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: local("kube-root-ca"),
					Items:                []corev1.KeyToPath{{Key: "none", Path: "x"}},
				},
			},
			err: `configmap "kube-root-ca" has no key none`,
		},
		"a missing optional key, left out": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: local("kube-root-ca"), Optional: ptr.To(true), Items: []corev1.KeyToPath{
					{Key: "none", Path: "x"}, {Key: "ca.crt", Path: "y"},
				},
			}},
			want: payload{"y": {[]byte("ca"), 0o644}},
		},
		"a path out of the volume, refused": {
			source: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{
					SecretName: "hub",
					Items:      []corev1.KeyToPath{{Key: "tls.crt", Path: "../../etc"}},
				},
			},
			err: `path "../../etc" leaves its volume`,
		},
		"the service account's volume": {
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "hub"}},
				{
					ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: local("kube-root-ca"),
						Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
					},
				},
				{
					DownwardAPI: &corev1.DownwardAPIProjection{
						Items: []corev1.DownwardAPIVolumeFile{
							{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
						},
					},
				},
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("none"), Optional: ptr.To(true)}},
			}}},
			token: issue,
			want: payload{
				"token": {[]byte("token for hub"), 0o644}, "ca.crt": {[]byte("ca"), 0o644}, "namespace": {[]byte("ns"), 0o644},
			},
		},
		"no token, an error": {
			source: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
				},
			},
			token: func(*corev1.ServiceAccountTokenProjection) ([]byte, error) { return nil, errors.New("no such account") },
			err:   "no such account",
		},
		"labels and annotations": {
			source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
			}}},
			want: payload{
				"labels": {[]byte("app=\"agent\"\ntier=\"a\\\"b\""), 0o644}, "annotations": {[]byte(`note="x"`), 0o644},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := volumePayload(examplePod(), corev1.Volume{Name: "v", VolumeSource: tc.source}, objects, tc.token)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(file{})); diff != "" || message(err) != tc.err {
				t.Errorf("%s error %q, want %q", diff, message(err), tc.err)
			}
		})
	}
}

func TestReferencesNamesEveryObjectOnce(t *testing.T) {
	local := corev1.LocalObjectReference{Name: "a"}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a", Optional: ptr.To(true)}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{
				VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{
							{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "b"}}},
						},
					},
				},
			},
		},
		InitContainers: []corev1.Container{
			{
				Env: []corev1.EnvVar{
					{
						ValueFrom: &corev1.EnvVarSource{
							SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}},
						},
					},
				},
			},
		},
		Containers: []corev1.Container{
			{
				EnvFrom: []corev1.EnvFromSource{
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "d"}}},
				},
				Env: []corev1.EnvVar{
					{Value: "x"},
					{
						ValueFrom: &corev1.EnvVarSource{
							ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "e"}},
						},
					},
				},
			},
		},
	}}
	want := []objectRef{
		{"Secret", "a"},
		{"ConfigMap", "a"},
		{"Secret", "b"},
		{"Secret", "c"},
		{"ConfigMap", "d"},
		{"ConfigMap", "e"},
	}
	if diff := cmp.Diff(want, references(pod), cmp.AllowUnexported(objectRef{})); diff != "" {
		t.Error(diff)
	}
}

func TestUnsupported(t *testing.T) {
	one := func(edit func(*corev1.Container)) *corev1.Pod {
		container := corev1.Container{Name: "main", Command: []string{"/agent"}}
		edit(&container)
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a plain pod, nothing": {pod: one(func(*corev1.Container) {})},
		"a container of an entrypoint": {pod: one(func(c *corev1.Container) { c.Command = nil }),
			want: "the process node knows no entrypoint of an image: container main needs a command"},
		"a lifecycle hook": {pod: one(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} }),
			want: "the process node has no lifecycle hooks: container main has one"},
		"a grpc probe": {
			pod: one(func(c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}}
			}),
			want: "the process node has no grpc probes: container main has one",
		},
		"a sidecar": {
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{
						{Name: "side", Command: []string{"/s"}, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
					},
				},
			},
			want: "the process node has no sidecars: init container side has a restartPolicy",
		},
		"a volume of the host": {
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					Volumes: []corev1.Volume{
						{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}},
					},
				},
			},
			want: "the process node cannot mount volume host: it knows secret, configMap, emptyDir, downwardAPI, " +
				"projected and image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unsupported(tc.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVolumeDirShowsEachPayloadWhole(t *testing.T) {
	dir := &volumeDir{path: filepath.Join(t.TempDir(), "v")}
	for _, step := range []struct {
		name    string
		payload payload
		changed bool
		want    map[string]string
	}{
		{
			"filled, both files are there", payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}}, true,
			map[string]string{"a": "1", "sub/b": "2"},
		},
		{
			"the same again, nothing is written", payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}}, false,
			map[string]string{"a": "1", "sub/b": "2"},
		},
		{
			"one changed, one gone, one new", payload{"a": {[]byte("3"), 0o644}, "c": {nil, 0o644}}, true,
			map[string]string{"a": "3", "c": ""},
		},
		{"emptied", payload{}, true, map[string]string{}},
	} {
		link, _ := os.Readlink(filepath.Join(dir.path, "..data"))
		changed, err := dir.write(step.payload)
		if err != nil || changed != step.changed {
			t.Fatalf("%s: changed %v, %v", step.name, changed, err)
		}
		if diff := cmp.Diff(step.want, visible(t, dir.path)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if now, err := os.Readlink(filepath.Join(dir.path, "..data")); err != nil || (now == link) == step.changed {
			t.Errorf("%s: ..data went from %q to %q, %v", step.name, link, now, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir.path, "..content_*")); err != nil || len(left) != 1 {
			t.Errorf("%s: content directories %v, %v", step.name, left, err)
		}
	}
}

func TestVolumeDirSetsModes(t *testing.T) {
	for name, tc := range map[string]struct {
		group *int
		want  fs.FileMode
	}{
		"as asked for":                     {want: 0o400},
		"readable by the group of the pod": {group: ptr.To(os.Getegid()), want: 0o440},
	} {
		t.Run(name, func(t *testing.T) {
			dir := &volumeDir{path: t.TempDir(), group: tc.group}
			if _, err := dir.write(payload{"a": {nil, 0o400}}); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir.path, "a"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != tc.want {
				t.Errorf("mode %o, want %o", info.Mode().Perm(), tc.want)
			}
		})
	}
}

// visible reads every file a user of the volume sees.
func visible(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name.Name(), "..") {
			continue
		}
		// A visible name is a link, which WalkDir would not follow.
		root, err := filepath.EvalSymlinks(filepath.Join(dir, name.Name()))
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			out[name.Name()+strings.TrimPrefix(path, root)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestSubPath(t *testing.T) {
	volume := t.TempDir()
	if err := os.Mkdir(filepath.Join(volume, "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		sub      string
		writable bool
		ok       bool
	}{
		"what is there": {sub: "there", ok: true},
		"what is missing in a writable volume is made": {sub: "new/deep", writable: true, ok: true},
		"what is missing in a read-only one, an error": {sub: "none"},
		"out of the volume, an error":                  {sub: "../x", writable: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := subPath(volume, tc.sub, tc.writable)
			if (err == nil) != tc.ok || tc.ok && !strings.HasSuffix(got, "/"+tc.sub) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
