package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostAddress(t *testing.T) {
	hosts := "127.20.129.1 kubernetes.default.svc.cluster.local kubernetes.default.svc\n127.20.129.2 user.ns.svc user.ns\n\n"
	for name, want := range map[string]string{"user.ns": "127.20.129.2", "kubernetes.default.svc": "127.20.129.1", "user": "", "127.20.129.1": ""} {
		if got := hostAddress(hosts, name); got != want {
			t.Errorf("%s has %q: want %q", name, got, want)
		}
	}
}

// The first is what a chart may begin with; the second what "helm template" says between two.
func TestDecodeSkipsDocumentsWithoutAnObject(t *testing.T) {
	objects, err := decode(strings.NewReader("---\n# Source: empty.yaml\n---\nkind: Secret\nmetadata: {name: a}\n---\n\n---\nkind: Service\nmetadata: {name: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+" "+o.GetName())
	}
	if diff := cmp.Diff([]string{"Secret a", "Service b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadyImageIsADirectory(t *testing.T) {
	t.Setenv(clusterProxyTool.env, "access_test.go")
	if path, err := clusterProxyTool.ready(); err == nil {
		t.Errorf("a file is taken for an image: %s", path)
	}
	dir := t.TempDir()
	t.Setenv(clusterProxyTool.env, dir)
	if path, err := clusterProxyTool.ready(); err != nil || path != dir {
		t.Errorf("got %s, %v", path, err)
	}
}
