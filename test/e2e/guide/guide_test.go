package guide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestSteps(t *testing.T) {
	const text = "# Title\n\n## Before\n\n```yaml\nnot: this\n```\n\n## Do\n\n### First\n\n```yaml\na: 1\n---\nb: 2\n```\n\nType `kubectl x` or\n\n    kubectl label c\n    ls\n\n```json\n    kubectl no\n```\n\n    kubectl get c \\\n      -n d\n\n## After\n\n    kubectl not this\n"
	got, err := Steps(text, "Do")
	apitest.Must(t, err)
	want := []Step{{YAML: "a: 1\n---\nb: 2\n"}, {Command: "kubectl label c"}, {Command: "kubectl get c       -n d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if _, err := Steps(text, "Nothing"); err == nil {
		t.Error("a section that is not there has steps")
	}
}
