package spoke

import (
	"bytes"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// The agent says what it is without a command.
func TestAgentSaysItsVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := newCommand(func() { t.Error("a command begins") })
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	apitest.Must(t, cmd.ExecuteContext(t.Context()))
	if want := "agent version " + version.Get().String(); strings.TrimSpace(out.String()) != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
