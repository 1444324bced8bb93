package kube

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MergePatch returns a JSON merge patch (RFC 7386) of exactly the given top-level fields. A
// merge patch replaces lists as a whole. So that this cannot undo another client's write,
// the API server refuses the patch with a conflict unless the object is still at
// resourceVersion. It works for atomic lists and list-maps alike.
func MergePatch(resourceVersion string, fields map[string]any) (client.Patch, error) {
	metadata := map[string]any{"resourceVersion": resourceVersion}
	if given, ok := fields["metadata"].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	body := maps.Clone(fields)
	if body == nil {
		body = map[string]any{}
	}
	body["metadata"] = metadata
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// MapChanges returns the part of a merge patch that turns one map into another, nil if they are
// equal.
func MapChanges(current, desired map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range desired {
		if have, ok := current[key]; !ok || have != value {
			changes[key] = value
		}
	}
	for key := range current {
		if _, ok := desired[key]; !ok {
			changes[key] = nil
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return changes
}
