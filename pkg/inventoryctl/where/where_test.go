package where

import (
	"strings"
	"testing"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestMatch(t *testing.T) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	profile.Status.Properties = []inventoryv1alpha1.Property{
		{Name: "region.example.com", Value: "eu-north"}, {Name: "lines", Value: "a\nb"}, {Name: "odd", Value: "x=(.*)"},
		{Name: "path", Value: "a/b"}, {Name: "empty"},
	}
	for conditions, want := range map[string]bool{
		"region.example.com=eu-north":          true,
		"region.example.com==eu-north":         true,
		"region.example.com=eu-*":              true,
		"region.example.com=eu":                false,
		"region.example.com=?u-n*":             true,
		"region.example.com!=eu-*":             false,
		"region.example.com!=us-*":             true,
		"region.example.com":                   true,
		"!region.example.com":                  false,
		"tier":                                 false,
		"!tier":                                true,
		"tier=*":                               false,
		"tier!=gold":                           true,
		"lines=a*b":                            true,
		"odd=x=(.*)":                           true,
		"odd=x=(*":                             true,
		"odd=x.*":                              false,
		"path=a*b":                             true,
		"empty=":                               true,
		"region.example.com=eu-* path=a/b":     true,
		"region.example.com=eu-* path=nowhere": false,
	} {
		t.Run(conditions, func(t *testing.T) {
			parsed, err := Parse(strings.Fields(conditions))
			apitest.Must(t, err)
			if got := parsed.Match(profile.Status.Properties); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "=x", "!=x", "!", " =x"} {
		if _, err := Parse([]string{text}); err == nil || !strings.Contains(err.Error(), "names no property") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
