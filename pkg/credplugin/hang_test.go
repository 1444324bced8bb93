package credplugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// The exec plugin of a kubeconfig knows nothing of --timeout, and must not delay
// the answer all the same.
func TestTimeoutBoundsAKubeconfigsOwnPlugin(t *testing.T) {
	kubeconfig := apitest.File(t, "config", []byte(`apiVersion: v1
kind: Config
current-context: hub
contexts: [{name: hub, context: {cluster: hub, user: me, namespace: team}}]
clusters: [{name: hub, cluster: {server: "https://127.0.0.1:1"}}]
users:
- name: me
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: sh
      args: ["-c", "exec sleep 20 2>/dev/null"] # "go test" would wait for its stderr
      interactiveMode: Never
`))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBERNETES_EXEC_INFO", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",`+
		`"spec":{"cluster":{"server":"https://x","config":{"clusterName":"cluster1"}}}}`)
	var stdout, stderr bytes.Buffer
	began := time.Now()
	code := Main(t.Context(), []string{"--managed-serviceaccount=reader", "--timeout=300ms"}, &stdout, &stderr)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it waited %s for the program", took)
	}
	if code != ExitUnreachable || !strings.Contains(stderr.String(), "--timeout") || stdout.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, stderr.String(), stdout.String())
	}
}
