package kube

import "testing"

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		"a": true, "*.example.com": true, "[a-c]*": true, `\*`: true, "a[": false, `a\`: false, "": false,
	} {
		if got := IsPattern(pattern); got != want {
			t.Errorf("%q is a pattern: %t, want %t", pattern, got, want)
		}
	}
}

func TestMatchesAny(t *testing.T) {
	patterns := []string{"a[", "*.example.com", "team/*"}
	for name, want := range map[string]bool{
		"x.example.com": true, "x.y.example.com": true, "example.com": false, "team/a": true, "team/a/b": false,
		"x/y.example.com": false, "a": false, "a[": false, "": false,
	} {
		if got := MatchesAny(patterns, name); got != want {
			t.Errorf("%q matches: %t, want %t", name, got, want)
		}
	}
	if MatchesAny(nil, "a") {
		t.Error("a name matches without patterns")
	}
}
