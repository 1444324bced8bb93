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
	missing := filepath.Join(t.TempDir(), "nowhere")
	for _, path := range []string{broken, missing} {
		_, err := Config(path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Config(%s) = %v, want an error naming the file", path, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error has more than one line: %q", err)
		}
	}
}
