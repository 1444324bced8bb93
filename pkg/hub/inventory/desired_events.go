package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// reasonWithheld is the reason of the events that say which profiles are missing.
const reasonWithheld = "ProfilesWithheld"

// desiredNotices returns, for the objects of one namespace, which clusters' profiles are
// missing, not ours, or without an access provider, and why.
func desiredNotices(byCluster map[string]outcome) []notices.Notice {
	var lacks []notices.Lack
	clusters := map[notices.Subject]map[string][]string{} // by reason
	warnings := map[notices.Subject]bool{}
	tooMany := hasTooMany(byCluster)
	for cluster, out := range byCluster {
		if out.kind == inPlace && len(out.access) > 0 {
			lacks = append(lacks, notices.Lack{
				Cluster: cluster, Reason: contract.ReasonAccessUnavailable, Why: strings.Join(out.access, " "),
				HasProfile: true, Bindings: out.bindings,
			})
		}
		for _, about := range subjects(cluster, out, tooMany) {
			if clusters[about] == nil {
				clusters[about] = map[string][]string{}
			}
			clusters[about][out.why] = append(clusters[about][out.why], cluster)
			warnings[about] = warnings[about] || out.kind != withheld
		}
	}
	list := notices.Desired(lacks)
	for about, byReason := range clusters {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(byReason)) {
			parts = append(parts, fmt.Sprintf("%s %s", kube.ListNames(kube.SortedNames(byReason[why]), maxNames), why))
		}
		eventType := corev1.EventTypeNormal
		if warnings[about] {
			eventType = corev1.EventTypeWarning
		}
		list = append(list, notices.Notice{
			Subject: about, Reason: reasonWithheld, Type: eventType,
			Text: kube.Shorten(strings.Join(parts, "; "), kube.MaxEventNoteBytes),
		})
	}
	return list
}

// subjects are the objects that somebody who misses a pair's profile would look at. Profiles
// in place need no word about that.
func subjects(cluster string, out outcome, tooMany bool) []notices.Subject {
	if out.kind == inPlace {
		return nil
	}
	if isAboutProfile(out) && !tooMany {
		return []notices.Subject{{Kind: notices.Profile, Name: cluster}}
	}
	list := make([]notices.Subject, 0, len(out.bindings)+len(out.placements))
	for _, name := range out.bindings {
		list = append(list, notices.Subject{Kind: notices.Binding, Name: name})
	}
	for _, name := range out.placements {
		list = append(list, notices.Subject{Kind: notices.Placement, Name: name})
	}
	return list
}

func isAboutProfile(out outcome) bool { return out.kind == leftAlone || out.kind == contested }

// hasTooMany reports whether the set bindings tell of what concerns profiles that are there.
func hasTooMany(byCluster map[string]outcome) bool {
	count := 0
	for _, out := range byCluster {
		if isAboutProfile(out) {
			count++
		}
	}
	return count > notices.MaxProfiles
}
