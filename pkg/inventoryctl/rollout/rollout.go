// Package rollout reports how far a rollout of AgentRevisions is: a pure function of the addons.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/agents"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// stalledAfter is how long a rollout stands still before it counts as stalled: no cluster has
// begun since, and one that began has not ended.
const stalledAfter = 30 * time.Minute

// maxMessageBytes is how much of a condition's message is reported.
const maxMessageBytes = 300

// Facts are the addons of all clusters and the ClusterManagementAddOn, which is nil if there is
// none, or if it is hidden.
type Facts struct {
	HiddenAddons, HiddenDefinition bool
	Definition                     *addonv1beta1.ClusterManagementAddOn

	clusters []cluster
}

type cluster struct {
	name  string
	agent agents.Agent
	why   string // why its agent is not available; "" if it is
}

// Add adds the addon of one cluster.
func (f *Facts) Add(addon *addonv1beta1.ManagedClusterAddOn) {
	one := cluster{name: addon.Namespace, agent: agents.Of(addon)}
	available := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if available != nil && available.Status != "True" {
		one.why = kube.Shorten(available.Message, maxMessageBytes)
	}
	f.clusters = append(f.clusters, one)
}

// Count is how many clusters have a revision and a state.
type Count struct {
	Revision string       `json:"revision"`
	State    agents.State `json:"state"`
	Clusters int          `json:"clusters"`
}

// Failure is a cluster whose agent was not upgraded.
type Failure struct {
	Cluster  string `json:"cluster"`
	Revision string `json:"revision"`

	// Why is a clause about the agent.
	Why string `json:"why"`
}

// Report says how far a rollout is.
type Report struct {
	// Targets are the revisions that clusters are to get.
	Targets []string `json:"targets"`

	// Total is the number of clusters with the addon, and Done of these have the revision that they
	// are to get, Progressing are being upgraded, and Waiting wait for their turn.
	Total       int `json:"total"`
	Done        int `json:"done"`
	Progressing int `json:"progressing"`
	Waiting     int `json:"waiting"`

	// Counts are by revision and state.
	Counts []Count `json:"counts"`

	// Failed are the clusters on which the upgrade failed, or takes longer than progressDeadline.
	Failed []Failure `json:"failed"`

	// Stalled is true if nothing moves although clusters are left.
	Stalled bool `json:"stalled"`

	// Messages are what Open Cluster Management says about the rollout to each Placement.
	Messages []string `json:"messages,omitempty"`

	NotVisible []string `json:"notVisible,omitempty"`
}

// IsDone reports whether every cluster has the revision that it is to get.
func (r Report) IsDone() bool { return r.Done == r.Total }

// Report computes the report.
func (f *Facts) Report(now time.Time) Report {
	r := Report{Targets: agents.Targets(f.Definition), Total: len(f.clusters), Counts: []Count{}, Failed: []Failure{}}
	if f.HiddenDefinition {
		r.NotVisible = append(r.NotVisible, "the ClusterManagementAddOn")
	}
	if f.HiddenAddons {
		r.NotVisible = append(r.NotVisible, "ManagedClusterAddOns")
	}
	definition := cmp.Or(f.Definition, &addonv1beta1.ClusterManagementAddOn{})
	deadline := shortestDeadline(definition)
	counts := map[Count]int{}
	youngest := time.Time{}
	for _, c := range f.clusters {
		state := stateOf(c.agent, r.Targets)
		counts[Count{Revision: c.agent.Revision, State: state}]++
		switch state {
		case agents.Completed:
			r.Done++
		case agents.Waiting, agents.Unknown:
			r.Waiting++
		case agents.Failed:
			r.Failed = append(r.Failed, c.failure("Open Cluster Management could not apply it"))
		case agents.Progressing:
			r.Progressing++
			age := now.Sub(c.agent.Since)
			if deadline > 0 && age > deadline {
				r.Failed = append(r.Failed, c.failure("it is not available after "+duration.HumanDuration(age)))
			}
			if c.agent.Since.After(youngest) {
				youngest = c.agent.Since
			}
		}
	}
	isStill := r.Progressing == 0 && len(r.Failed) > 0 || r.Progressing > 0 && now.Sub(youngest) > stalledAfter
	r.Stalled = !r.IsDone() && isStill
	for count, n := range counts {
		count.Clusters = n
		r.Counts = append(r.Counts, count)
	}
	slices.SortFunc(r.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision),
			cmp.Compare(slices.Index(agents.States(), a.State), slices.Index(agents.States(), b.State)))
	})
	slices.SortFunc(r.Failed, func(a, b Failure) int { return cmp.Compare(a.Cluster, b.Cluster) })
	r.Messages = messages(definition)
	return r
}

// stateOf is the state of an agent in this rollout: one that completed another revision waits,
// unless its addon names that revision itself.
func stateOf(agent agents.Agent, targets []string) agents.State {
	if agent.State == agents.Completed && !agent.OwnChoice && len(targets) > 0 &&
		!slices.Contains(targets, agent.Revision) {
		return agents.Waiting
	}
	return agent.State
}

func (c cluster) failure(why string) Failure {
	if c.why != "" {
		why += ": " + c.why
	}
	return Failure{Cluster: c.name, Revision: c.agent.Revision, Why: why}
}

// shortestDeadline is the shortest progressDeadline of a rollout; 0 if none has one.
func shortestDeadline(definition *addonv1beta1.ClusterManagementAddOn) (shortest time.Duration) {
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		strategy := placement.RolloutStrategy
		var text string
		switch {
		case strategy.Type == clusterv1alpha1.All && strategy.All != nil:
			text = strategy.All.ProgressDeadline
		case strategy.Type == clusterv1alpha1.Progressive && strategy.Progressive != nil:
			text = strategy.Progressive.ProgressDeadline
		case strategy.Type == clusterv1alpha1.ProgressivePerGroup && strategy.ProgressivePerGroup != nil:
			text = strategy.ProgressivePerGroup.ProgressDeadline
		}
		// OCM's "None" is no duration.
		if given, err := time.ParseDuration(text); err == nil && given > 0 && (shortest == 0 || given < shortest) {
			shortest = given
		}
	}
	return shortest
}

func messages(definition *addonv1beta1.ClusterManagementAddOn) (messages []string) {
	for _, progression := range definition.Status.InstallProgressions {
		found := meta.FindStatusCondition(
			progression.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
		if found != nil && found.Message != "" {
			messages = append(messages, fmt.Sprintf("Placement %s/%s: %s", progression.Namespace, progression.Name,
				kube.Shorten(found.Message, maxMessageBytes)))
		}
	}
	return messages
}
