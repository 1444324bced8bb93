package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// everybodysRoles are Kubernetes' own, which every account has.
var everybodysRoles = []string{"system:basic-user", "system:discovery", "system:public-info-viewer"}

// row is a grant, and what audit logs show of it, by verb.
type row struct {
	grant
	requests map[string]int
	names    map[string]map[string]bool
}

// validateGrants returns what is wrong with the grants, regardless of their use: wildcards, what
// is granted twice, and exceptions for what is not granted.
func validateGrants(grants []grant, known exceptions) []string {
	var findings []string
	for i, g := range grants {
		for _, part := range slices.Concat([]string{g.group, g.resource}, g.names, g.verbs) {
			if strings.Contains(part, "*") {
				findings = append(findings, fmt.Sprintf("%s: %q is a wildcard", g, part))
			}
		}
		for k, other := range grants {
			for _, verb := range g.verbs {
				// Of two equal ones, the second is too much.
				if k != i && other.covers(g, verb) && (k < i || !g.covers(other, verb)) {
					findings = append(findings, fmt.Sprintf("%s: role %s grants %s already", g, other.role, verb))
				}
			}
		}
	}
	for _, e := range known.all() {
		for _, verb := range e.verbs {
			isGranted := func(g grant) bool { return e.isFor(g, verb) && slices.Contains(g.verbs, verb) }
			if !slices.ContainsFunc(slices.Concat(grants, known.byValue), isGranted) {
				findings = append(findings, fmt.Sprintf("%s: it has an exception, and is not granted", e.name(verb)))
			}
		}
	}
	return findings
}

// covers reports whether another grant's verb adds nothing to this one.
func (g grant) covers(other grant, verb string) bool {
	if g.who != other.who || !g.about(other.group, other.resource) || !slices.Contains(g.verbs, verb) {
		return false
	}
	if !g.where.everywhere && g.where != other.where {
		return false
	}
	isMissing := func(name string) bool { return !slices.Contains(g.names, name) }
	return len(g.names) == 0 || len(other.names) > 0 && !slices.ContainsFunc(other.names, isMissing)
}

// compareUse compares what is granted with what was used. Without findings, they agree.
func compareUse(grants []grant, used *usage, known exceptions) (rows []row, findings []string) {
	grants = slices.Concat(grants, known.byValue)
	rows = make([]row, len(grants))
	for i, g := range grants {
		rows[i] = row{grant: g, requests: map[string]int{}, names: map[string]map[string]bool{}}
	}
	strange := map[string]int{}
	for u, count := range used.requests {
		if problem := enter(rows, u, count); problem != "" {
			strange[problem] += count
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(strange)) {
		findings = append(findings, fmt.Sprintf("%s (%d requests)", problem, strange[problem]))
	}
	for _, r := range rows {
		findings = append(findings, r.unused(used, known)...)
	}
	return rows, append(findings, known.needless(rows)...)
}

// enter counts requests in the rows that allow them, or says why they should not have been
// made.
func enter(rows []row, u use, count int) (problem string) {
	who := u.who
	if who == check {
		who = manager // whose account it has
	}
	switch {
	case u.as != "":
		return fmt.Sprintf("%s as %s: no program of this addon may act as another user", u, u.as)
	case !u.allowed:
		// It may have been too early, too late, or from where it is not granted any more.
		isOfTheKind := func(r row) bool {
			return r.who == who && r.about(u.group, u.resource) && slices.Contains(r.verbs, u.verb)
		}
		if slices.ContainsFunc(rows, isOfTheKind) {
			return ""
		}
		u.namespace, u.name = "", ""
		return fmt.Sprintf("%s: this was refused, and nothing of the kind is granted", u)
	case slices.Contains(everybodysRoles, u.role):
		return ""
	}
	matched := false
	for i := range rows {
		r := &rows[i]
		if r.who != who || !r.allows(u) || r.role != "" && r.role != u.role {
			continue
		}
		matched = true
		if u.who == check {
			continue // no reason to grant it
		}
		r.count(u, count)
		if list := u; u.streamed {
			list.verb = "list"
			if r.allows(list) {
				r.count(list, count)
			}
		}
	}
	if !matched {
		return fmt.Sprintf("%s: role %q allowed it, and chart and manifests do not", u, u.role)
	}
	return ""
}

func (r *row) count(u use, count int) {
	r.requests[u.verb] += count
	if r.names[u.verb] == nil {
		r.names[u.verb] = map[string]bool{}
	}
	r.names[u.verb][u.name] = true
}

// unused returns the verbs and names that were not used and have no exception.
func (r row) unused(used *usage, known exceptions) []string {
	var findings []string
	names := map[string]bool{}
	for _, verb := range r.verbs {
		if r.requests[verb] > 0 {
			maps.Copy(names, r.names[verb])
			continue
		}
		if e, found := find(known.within, r.grant, verb); found {
			if missing := e.missing(r.grant, used); missing != "" {
				findings = append(findings, fmt.Sprintf("%s: %s is unused: there was no %s", r, verb, missing))
			}
			continue
		}
		if _, found := find(known.rare, r.grant, verb); !found {
			findings = append(findings, fmt.Sprintf("%s: %s is unused", r, verb))
		}
	}
	for _, name := range r.grant.names {
		if len(names) > 0 && !names[name] {
			findings = append(findings, fmt.Sprintf("%s: no program used it for %s", r, name))
		}
	}
	return findings
}

// missing describes a request that should have shown a right and was not made, or is "".
func (e exception) missing(g grant, used *usage) string {
	wanted := []string{""}
	if e.shownBy.named {
		wanted = g.names
	}
	for _, name := range wanted {
		isIt := func(u use) bool {
			return u.who == e.who && u.succeeded && u.verb == e.shownBy.verb && u.group == e.shownBy.group &&
				u.resource == e.shownBy.resource && (name == "" || u.name == name)
		}
		found := false
		for u := range used.requests {
			found = found || isIt(u)
		}
		if !found {
			return strings.TrimSpace(fmt.Sprintf("%s of %s %s", e.shownBy.verb, e.shownBy.resource, name))
		}
	}
	return ""
}

// needless returns the exceptions without which there would be no finding either.
func (known exceptions) needless(rows []row) []string {
	var findings []string
	for _, e := range slices.Concat(known.within, known.rare) {
		for _, verb := range e.verbs {
			isNeeded := func(r row) bool { return e.isFor(r.grant, verb) && r.requests[verb] == 0 }
			if !e.sometimes && !slices.ContainsFunc(rows, isNeeded) {
				findings = append(findings, fmt.Sprintf("%s: its exception is not needed any more: %s", e.name(verb), e.reason))
			}
		}
	}
	return findings
}
