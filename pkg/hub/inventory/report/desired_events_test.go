package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestEventsAboutSlices(t *testing.T) {
	const (
		atRisk       = "AddonInstallationAtRisk"
		inconclusive = "DecisionsInconclusive"
		risk         = "This Placement installs the addon cluster-inventory and %s. " +
			"Open Cluster Management writes its decisions slice by slice and deletes the addon of clusters that are in no " +
			"slice meanwhile (open-cluster-management-io/ocm issue 1346); their profiles are kept for two minutes. " +
			"Before you change decisionStrategy, set the install strategy to Manual"
		unnamed = "Profiles were removed of clusters that have been in no slice of this Placement's decisions for " +
			"two minutes: %s. If it still chooses them, its decisions are incomplete."
		uninstalled = "Profiles were removed of clusters that have lacked the addon cluster-inventory for two minutes, " +
			"though this Placement, which installs it, names them or may be about to: %s. " +
			"If it still chooses them, Open Cluster Management has not installed the addon again."
	)
	on := func(placement, reason, text string) notices.Notice {
		return notices.Notice{
			Subject: notices.Subject{Kind: notices.Placement, Name: placement}, Reason: reason, Type: "Warning", Text: text,
		}
	}
	many := map[string]bool{}
	for i := range 3000 {
		many[fmt.Sprintf("a-cluster-with-a-rather-long-name-%04d", i)] = i%2 == 0
	}
	for name, test := range map[string]struct {
		risks   []selection.PlacementRisk
		removed map[string]map[string]bool
		want    []notices.Notice
	}{
		"nothing": {want: []notices.Notice{}},
		"more than one slice, and groups": {
			risks: []selection.PlacementRisk{{Name: "large"}, {Name: "canary", Grouped: true}},
			want: []notices.Notice{
				on("large", atRisk, fmt.Sprintf(risk, "has more than 100 clusters")),
				on("canary", atRisk, fmt.Sprintf(risk, "has decision groups")),
			},
		},
		"in no slice": {
			removed: map[string]map[string]bool{"p": {"c2": false, "c1": false}},
			want:    []notices.Notice{on("p", inconclusive, fmt.Sprintf(unnamed, "c1, c2"))},
		},
		"without the addon, though a slice may name them": {
			removed: map[string]map[string]bool{"p": {"c1": true}},
			want:    []notices.Notice{on("p", inconclusive, fmt.Sprintf(uninstalled, "c1"))},
		},
		"both, of two Placements": {
			removed: map[string]map[string]bool{
				"q": {"c3": false}, "p": {"c1": true, "c2": false},
			},
			want: []notices.Notice{
				on("p", inconclusive, fmt.Sprintf(unnamed, "c2")+" "+fmt.Sprintf(uninstalled, "c1")),
				on("q", inconclusive, fmt.Sprintf(unnamed, "c3")),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sliceNotices(test.risks, test.removed)); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("of many clusters", func(t *testing.T) {
		for _, notice := range sliceNotices(nil, map[string]map[string]bool{"p": many}) {
			if len(notice.Text) > kube.MaxEventNoteBytes || !strings.Contains(notice.Text, "lacked the addon") {
				t.Errorf("%d bytes: %s", len(notice.Text), notice.Text)
			}
		}
	})
}
