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

// note is what there is to say about a subject.
type note struct {
	eventType string // corev1.EventTypeNormal when everything is as it was asked for
	text      string
}

// notes says, for the objects of one namespace, which clusters' profiles are not
// there, or not ours, and why.
func notes(byCluster map[string]outcome) map[subject]note {
	clusters := map[subject]map[string][]string{} // by reason
	warnings := map[subject]bool{}
	for cluster, out := range byCluster {
		for _, about := range subjects(cluster, out) {
			if clusters[about] == nil {
				clusters[about] = map[string][]string{}
			}
			clusters[about][out.why] = append(clusters[about][out.why], cluster)
			warnings[about] = warnings[about] || out.result != withheld
		}
	}
	result := make(map[subject]note, len(clusters))
	for about, byReason := range clusters {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(byReason)) {
			parts = append(parts, fmt.Sprintf("%s %s", kube.ListNames(sorted(byReason[why]), maxNames), why))
		}
		eventType := corev1.EventTypeNormal
		if warnings[about] {
			eventType = corev1.EventTypeWarning
		}
		result[about] = note{eventType: eventType, text: strings.Join(parts, "; ")}
	}
	return result
}

// subjects are the objects at which somebody would look who wonders about a
// pair. That a profile is in place needs no word.
func subjects(cluster string, out outcome) []subject {
	var list []subject
	switch out.result {
	case inPlace:
	case leftAlone:
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
