package credplugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimeoutBoundsAKubeconfigsOwnPlugin: such a program knows nothing of
// --timeout.
func TestTimeoutBoundsAKubeconfigsOwnPlugin(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
current-context: hub
contexts: [{name: hub, context: {cluster: hub, user: me, namespace: team}}]
clusters: [{name: hub, cluster: {server: "https://127.0.0.1:1"}}]
users:
- name: me
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: sleep
      args: ["20"]
      interactiveMode: Never
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBERNETES_EXEC_INFO", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"cluster":{"server":"https://x","config":{"clusterName":"cluster1"}}}}`)
	var out, said bytes.Buffer
	began := time.Now()
	code := Main(t.Context(), []string{"--managed-serviceaccount=reader", "--timeout=300ms"}, &out, &said)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s: it waited for the program", took)
	}
	if code != ExitUnreachable || !strings.Contains(said.String(), "--timeout") || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, said.String(), out.String())
	}
}
