package hubtest

import (
	"slices"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

func TestSelections(t *testing.T) {
	var rights, all []string
	for _, object := range MustRender(t, "") {
		if Rights(object) {
			rights = append(rights, manifesttest.Identify(object))
		}
		if AllButProgram(object) {
			all = append(all, manifesttest.Identify(object))
		}
	}
	if !slices.Contains(rights, "ClusterRole /open-cluster-management:cluster-inventory:manager") {
		t.Errorf("rights %v", rights)
	}
	for _, identity := range rights {
		if !slices.Contains(all, identity) {
			t.Errorf("%s is a right, and not part of all", identity)
		}
	}
	if !slices.Contains(all, "ServiceAccount "+Namespace+"/"+Account) {
		t.Errorf("no ServiceAccount of the manager: %v", all)
	}
	for _, identity := range all {
		if strings.HasPrefix(identity, "Deployment ") || strings.HasPrefix(identity, "Job ") {
			t.Errorf("%s runs a Pod", identity)
		}
	}
}

func TestRenderReportsWhatHelmRefuses(t *testing.T) {
	if _, err := Render(t, "noSuchValue: 1"); err == nil || !strings.Contains(err.Error(), "noSuchValue") {
		t.Errorf("got %v", err)
	}
}
