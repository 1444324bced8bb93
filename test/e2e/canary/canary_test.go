package canary

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestATokenInALogIsFoundHoweverItIsWritten(t *testing.T) {
	token := Made()
	secret, err := json.Marshal(corev1.Secret{Data: map[string][]byte{"token": []byte(token)}})
	apitest.Must(t, err)
	for name, line := range map[string]string{
		"as a header":                       "Authorization: Bearer " + token,
		"in a Secret's JSON":                string(secret),
		"in a hexadecimal dump":             hex.Dump([]byte(`{"data":{"token":"` + token)),
		"in one that begins somewhere else": hex.Dump([]byte(`{"token":"` + token)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "hub", "manager.log")
			s := New()
			s.For(Made())
			s.For(token)
			write(t, path, "nothing\nno")
			if err := s.Logs(dir); err != nil {
				t.Fatalf("found where there is none: %v", err)
			}
			write(t, path, "thing\n"+line+"\n")
			if err := s.Logs(dir); err == nil {
				t.Error("not found")
			}
			if err := s.Logs(dir); err != nil {
				t.Errorf("what was read is read again: %v", err)
			}
		})
	}
}

// write adds to a file.
func write(t *testing.T, path, text string) {
	t.Helper()
	apitest.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	apitest.Must(t, err)
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	apitest.Must(t, file.Close())
}

func TestATokenInATextIsFound(t *testing.T) {
	token := Made()
	s := New()
	s.For(token)
	if err := s.Text("metrics", "errors_total 1"); err != nil {
		t.Errorf("found where there is none: %v", err)
	}
	if err := s.Text("metrics", `errors_total{message="`+token+`"} 1`); err == nil {
		t.Error("not found")
	}
}
