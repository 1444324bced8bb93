package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigNamesTheFileThatIsWrong(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("not: [yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "nowhere")
	for _, path := range []string{broken, empty, missing} {
		_, err := Config(path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Config(%s) = %v, want an error naming the file", path, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error has more than one line: %q", err)
		}
	}
}

// In a pod, client-go takes the pod's own cluster in place of a kubeconfig that says nothing.
func TestAKubeconfigIsNeverReplacedByThePodsOwnCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	const whole = `{"clusters":[{"name":"c","cluster":{"server":"https://hub.example"}}],` +
		`"users":[{"name":"u","user":{"token":"t"}}],` +
		`"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	cfg, err := ParseConfig([]byte(whole), "kubeconfig")
	if err != nil || cfg.Host != "https://hub.example" || cfg.BearerToken != "t" || cfg.QPS != -1 {
		t.Fatalf("a whole kubeconfig: %v, %v", cfg, err)
	}
	for name, content := range map[string]string{
		"empty":                "",
		"a space":              " ",
		"an empty object":      "{}",
		"only a kind":          `{"apiVersion":"v1","kind":"Config"}`,
		"no current context":   strings.Replace(whole, `"current-context":"x"`, `"current-context":""`, 1),
		"an unknown context":   strings.Replace(whole, `"current-context":"x"`, `"current-context":"y"`, 1),
		"an unknown cluster":   strings.Replace(whole, `{"cluster":"c"`, `{"cluster":"d"`, 1),
		"no cluster":           strings.Replace(whole, `{"cluster":"c",`, `{`, 1),
		"an empty cluster":     strings.Replace(whole, `{"server":"https://hub.example"}`, `{}`, 1),
		"an empty server":      strings.Replace(whole, "https://hub.example", "", 1),
		"nulls in all places":  `{"clusters":[{"name":"c","cluster":null}],"users":null,"contexts":[null],"current-context":null}`,
		"an object that isn't": `[]`,
	} {
		if content == whole {
			t.Fatalf("%s: it is whole", name)
		}
		if cfg, err := ParseConfig([]byte(content), "kubeconfig"); err == nil {
			t.Errorf("%s: %v, want an error", name, cfg)
		}
	}
}

func TestNamesOfFilesAreRelativeToTheKubeconfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := ParseConfig([]byte(`{"clusters":[{"name":"c","cluster":{"server":"https://hub.example"}}],`+
		`"users":[{"name":"u","user":{"tokenFile":"token"}}],`+
		`"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`),
		filepath.Join(dir, "kubeconfig"))
	if err != nil || cfg.BearerToken != "t" || cfg.BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("%v, %v", cfg, err)
	}
}
