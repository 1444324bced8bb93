package rule

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Facts are what a reader without a cache has read about one pair of namespace and cluster,
// perhaps without the right to read everything. Each object is nil if it does not exist.
type Facts struct {
	Profile    *inventoryv1alpha1.ClusterProfile
	Namespace  *metav1.PartialObjectMetadata
	Cluster    *clusterv1.ManagedCluster
	Addon      *addonv1beta1.ManagedClusterAddOn
	Bindings   []Binding   // of the namespace
	Placements []Placement // of the namespace, those that publish

	// ExclusiveSetsOnly is true if the manager publishes only through exclusive sets.
	ExclusiveSetsOnly bool

	Hidden Hidden
}

// Hidden says which kinds may not be read. The absence of their objects means nothing.
type Hidden struct {
	Namespaces, Clusters, Addons, Bindings, Sets, Placements, Decisions bool
}

// Any reports whether anything is hidden.
func (h Hidden) Any() bool { return h != Hidden{} }

// Binding is a set binding and its set, nil if it does not exist.
type Binding struct {
	Binding *clusterv1beta2.ManagedClusterSetBinding
	Set     *clusterv1beta2.ManagedClusterSet
}

// Placement is a Placement that publishes, with its decisions.
type Placement struct {
	placement *clusterv1beta1.Placement
	clusters  sets.Set[string]
	summary   Summary
}

// NewPlacements returns the publishing Placements of a namespace, each with its own slices.
// The decisions are counted once for all pairs.
func NewPlacements(placements []*clusterv1beta1.Placement, slicesOfAll []clusterv1beta1.PlacementDecision) []Placement {
	var publishing []Placement
	for _, placement := range placements {
		if !Publishes(placement) {
			continue
		}
		var own []clusterv1beta1.PlacementDecision
		for i := range slicesOfAll {
			if slicesOfAll[i].Namespace == placement.Namespace && PlacementOf(&slicesOfAll[i]) == placement.Name {
				own = append(own, slicesOfAll[i])
			}
		}
		publishing = append(publishing, NewPlacement(placement, own))
	}
	slices.SortFunc(publishing, func(a, b Placement) int { return cmp.Compare(a.placement.Name, b.placement.Name) })
	return publishing
}

// NewPlacement returns a Placement with its own slices.
func NewPlacement(placement *clusterv1beta1.Placement, own []clusterv1beta1.PlacementDecision) Placement {
	p := Placement{placement: placement, clusters: sets.New[string](), summary: SummaryOf(own)}
	for i := range own {
		p.clusters.Insert(DecidedClusters(&own[i])...)
	}
	return p
}

// Observed returns what the Placement says about a cluster.
func (p Placement) Observed(cluster string) ObservedPlacement {
	return ObservedPlacement{Placement: p.placement, Decides: p.clusters.Has(cluster), Summary: p.summary}
}

// Name returns the Placement's name.
func (p Placement) Name() string { return p.placement.Name }

// Clusters returns the clusters for which the Placement decides, in no order.
func (p Placement) Clusters() []string { return p.clusters.UnsortedList() }

// StepName names one of the conditions under which a cluster is published.
type StepName string

// The steps, in the order in which people take them.
const (
	StepAddon     StepName = "addon"
	StepAccepted  StepName = "accepted"
	StepBinding   StepName = "binding"
	StepSet       StepName = "set"
	StepPlacement StepName = "placement"
)

// Step is one condition of the rule for one pair.
type Step struct {
	Name StepName

	// Answer is Yes if the condition holds. It is also Unknown if the decisive objects are
	// Hidden.
	Answer Answer
	Hidden bool

	// Why completes, unless the answer is Yes, a sentence that begins with the cluster, or
	// says what is wrong with a binding.
	Why string

	// Binding is the binding that the steps of binding and set are about, nil if there is
	// none.
	Binding *Binding

	// withheld is true if the set would select the cluster, or may, but is not exclusive.
	withheld bool

	// Unused is true if the step has no condition: no Placement restricts the namespace.
	Unused bool
}

// Decide applies the rule to facts. If nothing is hidden, the result is that of a manager
// whose caches hold them.
func Decide(cluster string, f Facts) (Observation, Result) {
	o := f.observation(cluster)
	if !f.Hidden.Any() {
		return o, Pair(o)
	}
	result := Result{Answer: Yes}
	result.Bindings, result.Member = interestedBindings(o)
	steps := f.steps(o)
	for _, answer := range []Answer{Unknown, No} { // a definite No counts most
		for _, step := range slices.Backward(steps) {
			if step.Answer == answer {
				result.Answer, result.Why = step.Answer, step.Why
			}
		}
	}
	return o, result
}

// Explain is Decide with the steps of the rule. All of them are Yes if and only if the result
// is.
func Explain(cluster string, f Facts) (Result, []Step) {
	o, result := Decide(cluster, f)
	return result, f.steps(o)
}

// IsBound reports whether a binding publishes a set that selects the cluster, which exists.
func (f Facts) IsBound() bool {
	bound, _, _ := bindingsAnswer(f.observation(f.Cluster.Name))
	return bound == Yes
}

func (f Facts) steps(o Observation) []Step {
	steps := append([]Step{f.addonStep(), f.acceptedStep()}, f.bindingSteps(o)...)
	return append(steps, f.placementStep(o))
}

// observation converts facts into the rule's input. Nothing of it is restoring: a single look
// does not show it.
func (f Facts) observation(cluster string) Observation {
	o := Observation{
		Name: cluster, ProfileAPI: true, Profile: f.Profile, Namespace: f.Namespace, Cluster: f.Cluster, Addon: f.Addon,
		ExclusiveSetsOnly: f.ExclusiveSetsOnly,
	}
	o.Bindings = slices.Clone(f.Bindings)
	slices.SortFunc(o.Bindings, func(a, b Binding) int { return cmp.Compare(a.Binding.Name, b.Binding.Name) })
	for _, p := range f.Placements {
		o.Placements = append(o.Placements, p.Observed(cluster))
	}
	return o
}

// NotVisible begins the reason of a hidden step; the kinds that would be decisive follow.
const NotVisible = "is not known to you: you may not read "

func hiddenStep(name StepName, kinds string) Step {
	return Step{Name: name, Hidden: true, Why: NotVisible + kinds}
}

func (f Facts) addonStep() Step {
	if f.Hidden.Addons {
		return hiddenStep(StepAddon, "ManagedClusterAddOns")
	}
	answer, why := addonAnswer(f.Addon)
	return Step{Name: StepAddon, Answer: answer, Why: why}
}

func (f Facts) acceptedStep() Step {
	if f.Hidden.Clusters {
		return hiddenStep(StepAccepted, "ManagedClusters")
	}
	answer, why := clusterAnswer(f.Cluster)
	return Step{Name: StepAccepted, Answer: answer, Why: why}
}

// bindingSteps says whether a binding is in effect, and whether its set selects the
// cluster, for the binding that comes closest to publishing it.
func (f Facts) bindingSteps(o Observation) []Step {
	if f.Hidden.Bindings {
		return []Step{hiddenStep(StepBinding, "ManagedClusterSetBindings"), hiddenStep(StepSet, "ManagedClusterSetBindings")}
	}
	var best []Step
	for i := range o.Bindings {
		steps := f.stepsOfBinding(o, o.Bindings[i])
		if best == nil || closeness(steps) > closeness(best) {
			best = steps
		}
	}
	if best == nil {
		const none = "is in no ManagedClusterSet that is bound and published here"
		return []Step{{Name: StepBinding, Answer: No, Why: none}, {Name: StepSet, Answer: No, Why: none}}
	}
	return best
}

func (f Facts) stepsOfBinding(o Observation, b Binding) []Step {
	bound := Step{Name: StepBinding, Binding: &b}
	bound.Answer, bound.Why = boundAnswer(b.Binding)
	var selects Step
	switch {
	case f.Hidden.Sets && b.Set == nil:
		selects = hiddenStep(StepSet, "ManagedClusterSets")
	case f.Hidden.Clusters:
		selects = hiddenStep(StepSet, "ManagedClusters")
	default:
		selects = Step{Name: StepSet}
		switch selects.Answer, selects.Why = setAnswer(b, o.Cluster); {
		case selects.Answer == No:
			selects.Why = "is not selected by ManagedClusterSet " + quoted(b.Set.Name)
		case o.isWithheld(b):
			selects.Answer, selects.Why, selects.withheld = No, whyNotExclusive(b.Set.Name), true
		}
	}
	selects.Binding = &b
	return []Step{bound, selects}
}

// closeness orders bindings: those that publish the cluster first, then those whose set
// selects it.
func closeness(steps []Step) int {
	bound, selects := steps[0].Answer, steps[1].Answer
	switch {
	case bound == Yes && selects == Yes:
		return 4
	case bound != No && selects != No:
		return 3
	case selects == Yes, bound != No && steps[1].withheld:
		return 2
	case bound == Yes:
		return 1
	default:
		return 0
	}
}

func (f Facts) placementStep(o Observation) Step {
	switch {
	case f.Hidden.Placements:
		return hiddenStep(StepPlacement, "Placements")
	case len(o.Placements) > 0 && f.Hidden.Decisions:
		return hiddenStep(StepPlacement, "PlacementDecisions")
	case len(o.Placements) == 0 && f.Hidden.Namespaces:
		return hiddenStep(StepPlacement, "the Namespace, which may require a Placement")
	case o.Namespace == nil && f.Hidden.Namespaces:
		o.Namespace = &metav1.PartialObjectMetadata{}
	}
	step := Step{Name: StepPlacement}
	step.Answer, step.Why, _ = placementsAnswer(o)
	step.Unused = step.Answer == Yes && len(o.Placements) == 0
	return step
}

func quoted(name string) string { return `"` + name + `"` }
