package credplugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// The exec plugin of a kubeconfig knows nothing of --timeout, and must not delay
// the answer all the same.
func TestTimeoutBoundsAKubeconfigsOwnPlugin(t *testing.T) {
	held := filepath.Join(t.TempDir(), "held")
	apitest.Must(t, syscall.Mkfifo(held, 0o600))
	pipe, err := os.OpenFile(held, os.O_RDWR, 0)
	apitest.Must(t, err)
	// The program reads from the pipe until this, and never starts to after it.
	release := func() { _, _ = os.Remove(held), pipe.Close() }
	overdue := time.AfterFunc(apitest.Patience, release)
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
      args: ["-c", "exec cat `+held+` 2>/dev/null"] # "go test" would wait for its stderr
      interactiveMode: Never
`))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBERNETES_EXEC_INFO", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",`+
		`"spec":{"cluster":{"server":"https://x","config":{"clusterName":"cluster1"}}}}`)
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), []string{"--managed-serviceaccount=reader", "--timeout=300ms"}, &stdout, &stderr)
	if overdue.Stop() {
		release()
	} else {
		t.Error("it waited for the program")
	}
	if code != ExitUnreachable || !strings.Contains(stderr.String(), "--timeout") || stdout.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, stderr.String(), stdout.String())
	}
}
