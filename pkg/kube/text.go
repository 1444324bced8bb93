package kube

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Shorten returns text if it has at most limit bytes. Otherwise it cuts it between
// two characters so that it fits with "..." appended.
func Shorten(text string, limit int) string {
	const ellipsis = "..."
	if len(text) <= limit {
		return text
	}
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// ListNames joins the first names, at most limit, with commas and appends how many
// more there are.
func ListNames(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// SortedNames returns the names sorted, each once. The given slice stays as it is.
func SortedNames(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
