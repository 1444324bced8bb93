package faults

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// dropped are fields that differ between equal stories.
var dropped = []string{
	"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "observedGeneration",
	"lastTransitionTime", "lastObservedTime", "lastUpdateTime",
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// normal returns an object as indented JSON without what differs between equal stories, but for tokens: times,
// versions, identities. Conditions are sorted by type.
func normal(object map[string]any) string {
	content, err := json.MarshalIndent(cleaned(object), "", " ")
	if err != nil {
		return err.Error() // impossible for what was JSON
	}
	return times.ReplaceAllString(uuids.ReplaceAllString(string(content), "<uid>"), "<time>")
}

// withNames replaces the tokens in the normal form of a Secret by their names.
func withNames(text string, tokens map[string]string) string {
	for token, name := range tokens {
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte(token)), "<"+name+">")
	}
	return text
}

func cleaned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if !slices.Contains(dropped, name) {
				fields[name] = cleaned(field)
			}
		}
		return fields
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			items = append(items, cleaned(item))
		}
		if slices.ContainsFunc(items, func(item any) bool { return typeOf(item) == "" }) {
			return items
		}
		slices.SortStableFunc(items, func(a, b any) int { return cmp.Compare(typeOf(a), typeOf(b)) })
		return items
	}
	return value
}

// typeOf is the type of a condition, or "".
func typeOf(item any) string {
	fields, _ := item.(map[string]any)
	if _, hasStatus := fields["status"]; !hasStatus {
		return ""
	}
	named, _ := fields["type"].(string)
	return named
}
