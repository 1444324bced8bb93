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

// desiredOperations returns the patch that writes conditions of an addon, all of whose
// types are known. The API server refuses it with a conflict if the addon has changed
// since: conditions are addressed by their position.
func desiredOperations(addon *addonv1beta1.ManagedClusterAddOn, write []wanted, now time.Time) []operation {
	const list = "/status/conditions"
	have := addon.Status.Conditions
	operations := []operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: addon.ResourceVersion}}
	if len(have) == 0 {
		operations = append(operations, operation{Op: "add", Path: list, Value: []metav1.Condition{}})
	}
	var removed []int
	for _, w := range write {
		i := slices.IndexFunc(have, func(c metav1.Condition) bool { return c.Type == w.conditionType })
		condition := metav1.Condition{
			Type: w.conditionType, Status: w.Status, Reason: w.Reason, Message: w.Message,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		}
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
