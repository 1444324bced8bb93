package hub

import (
	"bytes"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// The manager says what it is without a hub, a namespace or anything else it needs to run.
func TestManagerSaysItsVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	apitest.Must(t, cmd.ExecuteContext(t.Context()))
	if want := "manager version " + version.Get().String(); strings.TrimSpace(out.String()) != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
