package notices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// MaxProfiles is how many ClusterProfiles of a namespace have their own event for one
	// reason. If there are more, the set binding has one for all of them.
	MaxProfiles = 10

	// maxNames bounds how many clusters an event names.
	maxNames = 10
)

// Kind is a kind of object.
type Kind int

// The kinds that events are about.
const (
	Binding   Kind = iota // ManagedClusterSetBinding
	Placement             // Open Cluster Management's
	Profile               // ClusterProfile
	Cluster               // ManagedCluster, in a scope without a namespace
)

// Subject is the object that an event is about.
type Subject struct {
	Kind Kind
	Name string
}

// Notice is what an event says.
type Notice struct {
	Subject Subject
	Reason  string // PascalCase

	// Type is corev1.EventTypeNormal if what it says is intended.
	Type string
	Text string
}

// Problem is something that a namespace lacks of one cluster, and why.
type Problem struct {
	Cluster string
	Reason  string // of the event

	// Why is one sentence or more.
	Why string

	// HasProfile is true if the namespace has this addon's ClusterProfile of the cluster.
	HasProfile bool

	// Bindings are the namespace's set bindings whose sets contain the cluster.
	Bindings []string
}

// Desired returns the notices about what a namespace lacks, as warnings: on each ClusterProfile
// or, where there is none or are too many, on a set binding.
func Desired(problems []Problem) []Notice {
	type key struct{ reason, cluster string }
	found, whys, profiles := map[key]Problem{}, map[key][]string{}, map[string]int{}
	for _, problem := range problems {
		k := key{problem.Reason, problem.Cluster}
		if _, known := found[k]; !known && problem.HasProfile {
			profiles[problem.Reason]++
		}
		found[k] = problem
		whys[k] = append(whys[k], problem.Why)
	}
	var notices []Notice
	folded := map[topic]map[string][]string{} // clusters by what is missing
	for k, problem := range found {
		why := strings.Join(kube.SortedNames(whys[k]), " ")
		switch {
		case problem.HasProfile && profiles[k.reason] <= MaxProfiles:
			notices = append(notices, warning(topic{Subject{Profile, k.cluster}, k.reason}, why))
		case len(problem.Bindings) > 0:
			about := topic{Subject{Binding, slices.Min(problem.Bindings)}, k.reason}
			if folded[about] == nil {
				folded[about] = map[string][]string{}
			}
			folded[about][why] = append(folded[about][why], k.cluster)
		}
	}
	for about, clusters := range folded {
		var text strings.Builder
		for _, why := range slices.Sorted(maps.Keys(clusters)) {
			if text.Len() > kube.MaxEventNoteBytes {
				break // what follows is not shown
			}
			if text.Len() > 0 {
				text.WriteString(" ")
			}
			text.WriteString(kube.ListNames(kube.SortedNames(clusters[why]), maxNames) + ": " + why)
		}
		notices = append(notices, warning(about, text.String()))
	}
	slices.SortFunc(notices, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(a.Subject.Kind, b.Subject.Kind), cmp.Compare(a.Subject.Name, b.Subject.Name),
			cmp.Compare(a.Reason, b.Reason))
	})
	return notices
}

func warning(about topic, text string) Notice {
	return Notice{
		Subject: about.subject, Reason: about.reason, Type: corev1.EventTypeWarning,
		Text: kube.Shorten(text, kube.MaxEventNoteBytes),
	}
}
