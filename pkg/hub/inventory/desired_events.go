package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// subject is an object of a namespace that an event is about.
type subject struct {
	kind subjectKind
	name string
}

type subjectKind int

const (
	aboutBinding subjectKind = iota
	aboutPlacement
	aboutProfile
)

// notice is what an event says about its subject.
type notice struct {
	eventType string // corev1.EventTypeNormal when everything is as requested
	text      string
}

// desiredNotices returns, for the objects of one namespace, which clusters' profiles
// are missing or not ours, and why.
func desiredNotices(byCluster map[string]outcome) map[subject]notice {
	clusters := map[subject]map[string][]string{} // by reason
	warnings := map[subject]bool{}
	for cluster, out := range byCluster {
		for _, about := range subjects(cluster, out) {
			if clusters[about] == nil {
				clusters[about] = map[string][]string{}
			}
			clusters[about][out.why] = append(clusters[about][out.why], cluster)
			warnings[about] = warnings[about] || out.kind != withheld
		}
	}
	notices := make(map[subject]notice, len(clusters))
	for about, byReason := range clusters {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(byReason)) {
			parts = append(parts, fmt.Sprintf("%s %s", kube.ListNames(kube.SortedNames(byReason[why]), maxNames), why))
		}
		eventType := corev1.EventTypeNormal
		if warnings[about] {
			eventType = corev1.EventTypeWarning
		}
		notices[about] = notice{eventType: eventType, text: strings.Join(parts, "; ")}
	}
	return notices
}

// subjects are the objects that somebody who misses a pair's profile would look at.
// Profiles in place need no event.
func subjects(cluster string, out outcome) []subject {
	var list []subject
	switch out.kind {
	case inPlace:
	case leftAlone, contested:
		list = append(list, subject{aboutProfile, cluster})
	default:
		for _, name := range out.bindings {
			list = append(list, subject{aboutBinding, name})
		}
		for _, name := range out.placements {
			list = append(list, subject{aboutPlacement, name})
		}
	}
	return list
}
