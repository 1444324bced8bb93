package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func checkRollout(f rollout.Facts, now time.Time) decide.Finding {
	const (
		name = "rollout"
		look = "kubectl inventory rollout"
	)
	report := f.Report(now)
	targets := "the ClusterManagementAddOn's AgentRevision"
	if len(report.Targets) > 0 {
		targets = "AgentRevision " + kube.ListNames(report.Targets, decide.MaxClusters)
	}
	done := fmt.Sprintf("%d of %d clusters have %s", report.Done, report.Total, targets)
	left := slices.DeleteFunc([]string{
		part(report.Progressing, "being upgraded"), part(report.Waiting, "waiting"), part(len(report.Failed), "failed"),
	}, func(part string) bool { return part == "" })
	if len(left) > 0 {
		done += ": " + strings.Join(left, ", ")
	}
	switch {
	case len(report.NotVisible) > 0:
		return notVisible(name, strings.Join(report.NotVisible, " and "))
	case report.Total == 0:
		return notConfigured(name, "no cluster has the addon")
	case len(report.Targets) == 0:
		return notConfigured(name, "the ClusterManagementAddOn names no AgentRevision")
	case len(report.Failed) > 0:
		var failed []string
		for _, failure := range report.Failed {
			failed = append(failed, failure.Cluster)
		}
		return problem(name, done+" ("+clusterNames(failed)+")", look)
	case report.Stalled:
		return problem(name, done+", and no cluster has begun for half an hour", look)
	default:
		return ok(name, done)
	}
}

// part is a number of things, "" if there are none.
func part(count int, what string) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", count, what)
}
