package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// frameworkPatience is how long after an addon's creation its first conditions wait for
	// addon-framework and for each other.
	frameworkPatience = time.Minute

	// recheckAfter is how soon to check again while something is unknown. Normally its
	// source announces a change earlier; among thousands of waiting clusters, checking more
	// often would cost more than it gains.
	recheckAfter = 30 * time.Second
)

// Desired is the desired state of a condition.
type Desired struct {
	// Absent says that the addon must not have the condition.
	Absent bool

	Status  metav1.ConditionStatus
	Reason  string
	Message string

	// HoldBack is how long the status must last before it is written, because it may be
	// transient.
	HoldBack time.Duration

	// Warn makes an event repeat the message when the condition takes on the reason.
	Warn bool
}

// wanted is the desired condition of one type.
type wanted struct {
	conditionType string

	// Desired is nil while it is unknown.
	*Desired

	// since is when the status was first held back.
	since time.Time
}

// heldBackFor returns how much longer to hold the condition back.
func (w wanted) heldBackFor(now time.Time) time.Duration {
	if w.HoldBack == 0 {
		return 0
	}
	return max(0, w.since.Add(w.HoldBack).Sub(now))
}

// matches reports whether there is nothing to write.
func (w wanted) matches(have *metav1.Condition) bool {
	if w.Absent || have == nil {
		return w.Absent && have == nil
	}
	return have.Status == w.Status && have.Reason == w.Reason && have.Message == w.Message
}

// decide returns which of the wanted conditions to write, including Degraded, and how soon
// to decide again; 0 means not before something changes. reported is the agent's report of
// a problem, if any.
func decide(
	addon *addonv1beta1.ManagedClusterAddOn, all []wanted, reported wanted, now time.Time,
) (write []wanted, again time.Duration) {
	pending := false // whether a condition that the addon lacks cannot be written yet
	isBorn := true
	for _, w := range all {
		have := meta.FindStatusCondition(addon.Status.Conditions, w.conditionType)
		isMissing := have == nil && (w.Desired == nil || !w.Absent)
		isBorn = isBorn && !isMissing
		switch {
		case w.Desired == nil:
			again = kube.Sooner(again, recheckAfter)
			pending = pending || isMissing
		case w.matches(have):
		default:
			if left := w.heldBackFor(now); left > 0 {
				again = kube.Sooner(again, left)
				pending = pending || isMissing
				continue
			}
			write = append(write, w)
		}
	}
	left := addon.CreationTimestamp.Add(frameworkPatience).Sub(now)
	if left > 2*frameworkPatience {
		left = 0 // the hub's clock is ahead of this one, so the addon's age is unknown
	}
	if !isBorn && left > 0 && (pending || !isSetUp(addon)) {
		return nil, kube.Sooner(again, left)
	}
	degraded, later := desiredDegraded(addon.Status.Conditions, write, reported, now)
	have := meta.FindStatusCondition(addon.Status.Conditions, contract.ConditionDegraded)
	// The absence of problems is not worth a separate write.
	if !degraded.matches(have) && (have != nil || degraded.Status == metav1.ConditionTrue || len(write) > 0) {
		write = append(write, degraded)
	}
	return write, kube.Sooner(again, later)
}

// isSetUp reports whether addon-framework has made its first writes of the addon. It
// applies the registration, then the finalizer, and then sets the mode of the health check.
func isSetUp(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return addon.Status.HealthCheck.Mode != ""
}
