package kube

import (
	"path"
	"slices"
)

// IsPattern reports whether names can be compared with a pattern. As in path.Match, * matches
// any characters but a slash. An empty pattern matches no name, so it is an error.
func IsPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil && pattern != ""
}

// MatchesAny reports whether a name matches one of patterns. What is not a pattern matches
// no name.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	})
}
