package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// reasonWithheld is the reason of the events that say which profiles are missing.
	reasonWithheld = "ProfilesWithheld"

	// reasonAtRisk is the reason of the events on Placements of the install strategy from which
	// OCM may remove the addon of clusters that have been chosen without interruption.
	reasonAtRisk = "AddonInstallationAtRisk"

	// reasonInconclusive is the reason of the events that name clusters whose profiles were
	// removed although a Placement may still choose them.
	reasonInconclusive = "DecisionsInconclusive"

	// reasonOverruled is the reason of the events that name properties of other writers that
	// got the values of claims.
	reasonOverruled = "PropertiesOverruled"

	// reasonCrowdedOut is the reason of the events on profiles in which other writers leave no
	// room for this addon's access providers.
	reasonCrowdedOut = "AccessProvidersFull"

	// reasonMemberID is the reason of the events on profiles without the member id that their
	// cluster asks for.
	reasonMemberID = "MemberIDRefused"

	// reasonHeldBack is the reason of the events on ManagedClusters whose profiles change more
	// often than they are written.
	reasonHeldBack = "ProfileWritesHeldBack"
)

// overruledNotices returns what the writers of properties must know whose values were
// replaced by those of claims.
func overruledNotices(byCluster map[string][]string) []notices.Notice {
	problems := make([]notices.Problem, 0, len(byCluster))
	for cluster, names := range byCluster {
		quoted := make([]string, 0, len(names))
		for _, name := range names {
			quoted = append(quoted, kube.Quote(name))
		}
		problems = append(problems, notices.Problem{
			Cluster: cluster, Reason: reasonOverruled, HasProfile: true,
			Why: fmt.Sprintf("Another client wrote properties that the cluster has claims of; the claims' values count: %s.",
				kube.ListNames(kube.SortedNames(quoted), profiles.MaxNames)),
		})
	}
	return notices.Desired(problems)
}

// heldBackNotices returns what to say on a ManagedCluster about the namespaces in which changes
// of its profile are held back.
func heldBackNotices(cluster string, namespaces []string, every time.Duration) []notices.Notice {
	if len(namespaces) == 0 {
		return nil
	}
	text := fmt.Sprintf("This cluster changes so often that its ClusterProfiles are written only every %s "+
		"(profiles.writeInterval), in %s. Each shows the last value then; health and access providers do not wait. "+
		"Find out what changes, for instance with kubectl get managedcluster %s -o yaml --watch",
		every, kube.ListNames(kube.SortedNames(namespaces), profiles.MaxNames), cluster)
	about := notices.Subject{Kind: notices.Cluster, Name: cluster}
	return []notices.Notice{notice(about, reasonHeldBack, corev1.EventTypeWarning, text)}
}

func notice(about notices.Subject, reason, eventType, text string) notices.Notice {
	return notices.Notice{
		Subject: about, Reason: reason, Type: eventType, Text: kube.Shorten(text, kube.MaxEventNoteBytes),
	}
}

// sliceNotices returns what the administrators of Placements must know about their slices.
func sliceNotices(
	risks []selection.PlacementRisk, inconclusive map[string]map[string]bool,
) []notices.Notice {
	list := make([]notices.Notice, 0, len(risks)+len(inconclusive))
	add := func(placement, reason, text string) {
		about := notices.Subject{Kind: notices.Placement, Name: placement}
		list = append(list, notice(about, reason, corev1.EventTypeWarning, text))
	}
	for _, risk := range risks {
		why := "has more than 100 clusters"
		if risk.Grouped {
			why = "has decision groups"
		}
		add(risk.Name, reasonAtRisk, fmt.Sprintf("This Placement installs the addon %s and %s. "+
			"Open Cluster Management writes its decisions slice by slice and deletes the addon of clusters that are in no "+
			"slice meanwhile (open-cluster-management-io/ocm issue 1346); their profiles are kept for two minutes. "+
			"Before you change decisionStrategy, set the install strategy to Manual", contract.AddonName, why))
	}
	for _, placement := range slices.Sorted(maps.Keys(inconclusive)) {
		add(placement, reasonInconclusive, inconclusiveText(inconclusive[placement]))
	}
	return list
}

// inconclusiveText says which clusters' profiles were removed although a Placement may still
// choose them: because it did not decide for them or, for those that are true, did not install the
// addon.
func inconclusiveText(clusters map[string]bool) string {
	var unnamed, uninstalled []string
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		if clusters[cluster] {
			uninstalled = append(uninstalled, cluster)
		} else {
			unnamed = append(unnamed, cluster)
		}
	}
	var texts []string
	if len(unnamed) > 0 {
		texts = append(texts, fmt.Sprintf("Profiles were removed of clusters that have been in no slice of this Placement's "+
			"decisions for two minutes: %s. If it still chooses them, its decisions are incomplete.",
			kube.ListNames(unnamed, profiles.MaxNames)))
	}
	if len(uninstalled) > 0 {
		texts = append(texts, fmt.Sprintf("Profiles were removed of clusters that have lacked the addon %s for two minutes, "+
			"though this Placement, which installs it, names them or may be about to: %s. "+
			"If it still chooses them, Open Cluster Management has not installed the addon again.",
			contract.AddonName, kube.ListNames(uninstalled, profiles.MaxNames)))
	}
	return strings.Join(texts, " ")
}

// desiredNotices returns, for the objects of one namespace, which clusters' profiles are
// missing, not ours, or without an access provider, and why.
func desiredNotices(byCluster map[string]Outcome) []notices.Notice {
	var problems []notices.Problem
	clusters := map[notices.Subject]map[string][]string{} // by reason
	warnings := map[notices.Subject]bool{}
	tooMany := hasTooMany(byCluster)
	for cluster, out := range byCluster {
		if out.Kind == InPlace && len(out.Access) > 0 {
			problems = append(problems, notices.Problem{
				Cluster: cluster, Reason: contract.ReasonAccessUnavailable, Why: strings.Join(out.Access, " "),
				HasProfile: true, Bindings: out.Bindings,
			})
		}
		if len(out.CrowdedOut) > 0 {
			problems = append(problems, notices.Problem{
				Cluster: cluster, Reason: reasonCrowdedOut, HasProfile: true, Bindings: out.Bindings,
				Why: fmt.Sprintf("Not published, because a ClusterProfile has at most %d access providers and other clients "+
					"wrote the rest: %s.", profiles.MaxAccessProviders, strings.Join(out.CrowdedOut, ", ")),
			})
		}
		if out.RefusedID != "" {
			problems = append(problems, notices.Problem{
				Cluster: cluster, Reason: reasonMemberID, HasProfile: true,
				Why: fmt.Sprintf("The cluster does not get the member id %s: another cluster has it.", kube.Quote(out.RefusedID)),
			})
		}
		for _, about := range subjects(cluster, out, tooMany) {
			if clusters[about] == nil {
				clusters[about] = map[string][]string{}
			}
			clusters[about][out.Why] = append(clusters[about][out.Why], cluster)
			warnings[about] = warnings[about] || out.Kind != Withheld
		}
	}
	list := notices.Desired(problems)
	for about, byReason := range clusters {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(byReason)) {
			parts = append(parts, fmt.Sprintf("%s %s", kube.ListNames(kube.SortedNames(byReason[why]), profiles.MaxNames), why))
		}
		eventType := corev1.EventTypeNormal
		if warnings[about] {
			eventType = corev1.EventTypeWarning
		}
		list = append(list, notice(about, reasonWithheld, eventType, strings.Join(parts, "; ")))
	}
	return list
}

// subjects are the objects that a user who misses a pair's profile would look at. Profiles in
// place need no word about that.
func subjects(cluster string, out Outcome, tooMany bool) []notices.Subject {
	if out.Kind == InPlace {
		return nil
	}
	if isAboutProfile(out) && !tooMany {
		return []notices.Subject{{Kind: notices.Profile, Name: cluster}}
	}
	list := make([]notices.Subject, 0, len(out.Bindings)+len(out.Placements))
	for _, name := range out.Bindings {
		list = append(list, notices.Subject{Kind: notices.Binding, Name: name})
	}
	for _, name := range out.Placements {
		list = append(list, notices.Subject{Kind: notices.Placement, Name: name})
	}
	return list
}

func isAboutProfile(out Outcome) bool { return out.Kind == LeftAlone || out.Kind == Contested }

// hasTooMany reports whether problems of existing profiles are reported on the set bindings.
func hasTooMany(byCluster map[string]Outcome) bool {
	count := 0
	for _, out := range byCluster {
		if isAboutProfile(out) {
			count++
		}
	}
	return count > notices.MaxProfiles
}
