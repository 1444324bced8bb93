package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestRunAs(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.PodSecurityContext
		own  *corev1.SecurityContext
		want user
		err  string
	}{
		"nothing said, the user of images": {want: user{uid: 65532, gid: 65532}},
		"the pod's user and group": {
			pod:  &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1)), RunAsGroup: ptr.To(int64(2))},
			want: user{uid: 1, gid: 2},
		},
		"the container's user wins": {
			pod:  &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1))},
			own:  &corev1.SecurityContext{RunAsUser: ptr.To(int64(3))},
			want: user{uid: 3, gid: 3},
		},
		"volumes' and supplementary groups": {
			pod:  &corev1.PodSecurityContext{FSGroup: ptr.To(int64(9)), SupplementalGroups: []int64{8}},
			want: user{uid: 65532, gid: 65532, groups: []int{8, 9}},
		},
		"root where that is allowed": {own: &corev1.SecurityContext{RunAsUser: ptr.To(int64(0))}, want: user{}},
		"root where that is forbidden, refused": {
			pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(0))},
			err: "container has runAsNonRoot and runAsUser 0",
		},
		"root where the container allows it": {
			pod:  &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(0))},
			own:  &corev1.SecurityContext{RunAsNonRoot: ptr.To(false)},
			want: user{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := runAs(
				&corev1.Pod{Spec: corev1.PodSpec{SecurityContext: tc.pod}}, &corev1.Container{SecurityContext: tc.own},
			)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(user{})); diff != "" || message(err) != tc.err {
				t.Errorf("%s error %q, want %q", diff, message(err), tc.err)
			}
		})
	}
}

func TestRepository(t *testing.T) {
	for name, tc := range map[string]struct{ image, want string }{
		"a tag":               {"quay.io/ocm/addon:v1", "quay.io/ocm/addon"},
		"a digest":            {"quay.io/ocm/addon@sha256:abc", "quay.io/ocm/addon"},
		"both":                {"quay.io/ocm/addon:v1@sha256:abc", "quay.io/ocm/addon"},
		"neither":             {"quay.io/ocm/addon", "quay.io/ocm/addon"},
		"a port is not a tag": {"localhost:5000/addon", "localhost:5000/addon"},
		"a port and a tag":    {"localhost:5000/addon:v1", "localhost:5000/addon"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, repository(tc.image)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServiceEnvironment(t *testing.T) {
	got, err := serviceEnvironment("https://127.0.0.1:6443")
	want := map[string]string{
		"KUBERNETES_SERVICE_HOST":       "127.0.0.1",
		"KUBERNETES_SERVICE_PORT":       "6443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "6443",
		"KUBERNETES_PORT":               "tcp://127.0.0.1:6443",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := serviceEnvironment("https://hub.example.com"); err == nil {
		t.Error("a server without a port is taken")
	}
}
