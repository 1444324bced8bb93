package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// referenceWait is for how long the manager lets a profile wait for what refers to it.
const referenceWait = 3 * time.Second

const references = "placementdecisions.multicluster.x-k8s.io"

// object is what matters of an object for the order of changes.
type object struct {
	Metadata struct {
		UID             string
		OwnerReferences []struct{ Kind, Name, UID string }
	}
	Status struct {
		AccessProviders []accessProvider
	}
	Decisions []struct {
		ClusterProfileRef struct{ Name string }
	}
	Data map[string][]byte
}

type accessProvider struct {
	Name    string
	Cluster json.RawMessage
}

// order checks, change by change and as versions order them, what consumers rely on between
// objects of different kinds.
type order struct {
	story    story
	result   result
	profiles map[string]object   // by key
	refers   map[string][]string // profiles by the key of what refers to them
	referred map[string]bool     // profiles to which something refers, or did
	copies   map[string]object   // copies of tokens by key
	findings []string
}

// checkOrder returns what is wrong with the order of changes.
func checkOrder(s story, got result) []string {
	o := &order{
		story: s, result: got, profiles: map[string]object{}, refers: map[string][]string{}, referred: map[string]bool{},
		copies: map[string]object{},
	}
	byVersion := func(changes []change) []change {
		return slices.SortedStableFunc(slices.Values(changes), func(a, b change) int {
			return cmp.Compare(a.version, b.version)
		})
	}
	for _, c := range byVersion(got.setup) {
		o.see(c, false)
	}
	for _, c := range byVersion(got.changes) {
		o.see(c, true)
	}
	for _, key := range slices.Sorted(maps.Keys(o.copies)) {
		if got.converged && !o.isOwned(key) {
			o.add("copy %s is not owned by the profile there, so garbage collection deletes it", key)
		}
	}
	return o.findings
}

func (o *order) add(format string, values ...any) {
	if text := fmt.Sprintf(format, values...); !slices.Contains(o.findings, text) {
		o.findings = append(o.findings, text)
	}
}

// see follows one change. checked is false for those of a story's setup.
func (o *order) see(c change, checked bool) {
	var now object
	if json.Unmarshal([]byte(c.content), &now) != nil && c.what != deleted || isForeign(c.key) {
		return
	}
	switch c.resource {
	case profiles:
		o.profile(c, now, checked)
	case references:
		o.reference(c, now)
	case secrets:
		_, isCopy := o.result.tokens[string(now.Data["token"])]
		switch {
		case c.what == deleted:
			delete(o.copies, c.key)
		case isCopy && !isOfCluster(namespaceOf(c.key)):
			o.copies[c.key] = now
			if c.what == created && !o.isOwned(c.key) {
				o.add("copy %s was created without a profile that owns it", c.key)
			}
		}
	}
	for pair := range o.referred {
		if checked && o.story.keeps(pair) && !o.isReferred(pair) {
			o.add("nothing refers any more to the profile %s, which is chosen all along: %s", pair, c)
		}
	}
}

func (o *order) profile(c change, now object, checked bool) {
	before, existed := o.profiles[c.key]
	if c.what == deleted {
		delete(o.profiles, c.key)
		if c.lost {
			delete(o.referred, c.key) // what refers to it may go and come again
			return
		}
		// A busy machine makes the deletion later, not earlier.
		isAtOnce := slices.ContainsFunc(o.result.causes, func(cause time.Time) bool {
			return c.at.After(cause) && c.at.Sub(cause) < referenceWait
		})
		if o.isReferred(c.key) && checked && isAtOnce {
			o.add("profile %s was deleted at once, although something referred to it", c.key)
		}
		return
	}
	o.profiles[c.key] = now
	if !existed || !checked || !o.story.keeps(c.key) {
		return
	}
	for _, provider := range before.Status.AccessProviders {
		if !slices.ContainsFunc(now.Status.AccessProviders, func(other accessProvider) bool {
			isSame := o.result.versions > 0 || string(other.Cluster) == string(provider.Cluster)
			return other.Name == provider.Name && isSame
		}) {
			o.add("profile %s lost the access provider %s, which it has all along", c.key, provider.Name)
		}
	}
}

func (o *order) reference(c change, now object) {
	before := o.refers[c.key]
	delete(o.refers, c.key)
	if c.what == deleted {
		return
	}
	for _, decision := range now.Decisions {
		pair := namespaceOf(c.key) + "/" + decision.ClusterProfileRef.Name
		o.refers[c.key] = append(o.refers[c.key], pair)
		o.referred[pair] = true
		if _, exists := o.profiles[pair]; !exists && !slices.Contains(before, pair) {
			o.add("%s began to refer to the profile %s, which did not exist", c.key, pair)
		}
	}
}

func (o *order) isReferred(pair string) bool {
	for _, pairs := range o.refers {
		if slices.Contains(pairs, pair) {
			return true
		}
	}
	return false
}

// isOwned reports whether a copy belongs to a profile that exists.
func (o *order) isOwned(key string) bool {
	return slices.ContainsFunc(o.copies[key].Metadata.OwnerReferences, func(owner struct{ Kind, Name, UID string }) bool {
		profile, exists := o.profiles[namespaceOf(key)+"/"+owner.Name]
		return owner.Kind == "ClusterProfile" && exists && profile.Metadata.UID == owner.UID
	})
}
