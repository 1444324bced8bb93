package conditions

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// desiredFirst returns the fields of the merge patch that writes conditions of an addon that
// has none. A JSON patch could not add them to an addon without a status, and the cache does
// not tell an empty status from a missing one.
func desiredFirst(write []wanted, now time.Time) map[string]any {
	conditions := make([]metav1.Condition, len(write))
	for i, w := range write {
		conditions[i] = w.condition(now)
	}
	return map[string]any{"status": map[string]any{"conditions": conditions}}
}

// condition returns the condition as it begins now.
func (w wanted) condition(now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: w.conditionType, Status: w.Status, Reason: w.Reason, Message: w.Message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
}

// desiredOperations returns the JSON patch that writes conditions of an addon that has
// conditions already; the types of all of them are known. The API server refuses it with a
// conflict if the addon has changed since: conditions are addressed by their position.
func desiredOperations(addon *addonv1beta1.ManagedClusterAddOn, write []wanted, now time.Time) []operation {
	const list = "/status/conditions"
	have := addon.Status.Conditions
	operations := []operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: addon.ResourceVersion}}
	var removed []int
	for _, w := range write {
		i := slices.IndexFunc(have, func(c metav1.Condition) bool { return c.Type == w.conditionType })
		condition := w.condition(now)
		switch {
		case w.Absent:
			removed = append(removed, i)
		case i < 0:
			operations = append(operations, operation{Op: "add", Path: list + "/-", Value: condition})
		default:
			if have[i].Status == w.Status {
				condition.LastTransitionTime = have[i].LastTransitionTime
			}
			operations = append(operations, operation{Op: "replace", Path: list + "/" + strconv.Itoa(i), Value: condition})
		}
	}
	// From the end, so that earlier positions stay valid.
	slices.Sort(removed)
	for _, i := range slices.Backward(removed) {
		operations = append(operations, operation{Op: "remove", Path: list + "/" + strconv.Itoa(i)})
	}
	return operations
}
