// Package where selects ClusterProfiles by their properties: the conditions of the flag --where.
package where

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

type condition struct {
	property string
	values   *regexp.Regexp // nil if any value will do
	negated  bool
}

// Conditions must all hold.
type Conditions []condition

// Parse reads conditions: NAME=PATTERN and NAME!=PATTERN compare the value, where * stands for any
// text and ? for one character, and NAME and !NAME ask whether the property exists. As with label
// selectors, NAME!=PATTERN also holds without the property.
func Parse(texts []string) (Conditions, error) {
	var all Conditions
	for _, text := range texts {
		one, err := parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func parse(text string) (condition, error) {
	name, pattern, hasPattern := strings.Cut(text, "=")
	var c condition
	if hasPattern {
		name, c.negated = strings.CutSuffix(name, "!")
		c.values = glob(strings.TrimPrefix(pattern, "=")) // == is =, as in label selectors
	} else {
		name, c.negated = strings.CutPrefix(name, "!")
	}
	if c.property = strings.TrimSpace(name); c.property == "" {
		return condition{}, fmt.Errorf("%q names no property: write NAME=PATTERN, NAME!=PATTERN, NAME or !NAME", text)
	}
	return c, nil
}

// glob returns what a pattern matches: a whole value.
func glob(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, `.*`), `\?`, `.`)
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}

// Match reports whether properties meet all conditions.
func (c Conditions) Match(properties []inventoryv1alpha1.Property) bool {
	for _, one := range c {
		at := slices.IndexFunc(properties, func(p inventoryv1alpha1.Property) bool { return p.Name == one.property })
		holds := at >= 0 && (one.values == nil || one.values.MatchString(properties[at].Value))
		if holds == one.negated {
			return false
		}
	}
	return true
}
