package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of processes, while the story runs. None of them has a target.
const (
	// paused stops the leading manager for pauseFor, while another one stands by.
	paused proxy.Kind = "leader-paused"
	// restarted kills the API server and etcd, and starts them again.
	restarted proxy.Kind = "hub-restarted"
	// restored puts etcd back to before the story, after it. The story is then repeated.
	restored proxy.Kind = "hub-restored"
)

// ofProcesses are all of them.
var ofProcesses = []proxy.Kind{paused, restarted, restored}

// ofKinds are the faults whose target is a kind.
var ofKinds = slices.Concat(proxy.OfWatches, ofAPIs)

// withoutTarget are the faults of the whole program, and none.
var withoutTarget = append(slices.Clone(ofProcesses), proxy.Lagging, proxy.None)

// pauseFor is longer than a manager may lead without renewing its Lease.
const pauseFor = 25 * time.Second

// Plan is one run of a story with one fault.
type plan struct {
	story string
	fault proxy.Fault
}

// String is what PLAN selects.
func (p plan) String() string {
	switch {
	case slices.Contains(withoutTarget, p.fault.Kind):
		return fmt.Sprintf("%s %s", p.story, p.fault.Kind)
	case slices.Contains(ofKinds, p.fault.Kind):
		return fmt.Sprintf("%s %s %s", p.story, p.fault.Kind, p.fault.Key.Resource)
	case p.fault.Kind == proxy.SlowWebhook:
		return fmt.Sprintf("%s %s %s", p.story, p.fault.Kind, p.fault.Key.Object)
	default:
		return fmt.Sprintf("%s %s %s", p.story, p.fault.Kind, p.fault.Key)
	}
}

// parsePlan reads what String returns.
func parsePlan(text string) (plan, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	kind, target, _ := strings.Cut(rest, " ")
	p := plan{story: name, fault: proxy.Fault{Kind: proxy.Kind(kind)}}
	at := slices.IndexFunc(stories, func(s story) bool { return s.name == name })
	if at < 0 {
		return plan{}, fmt.Errorf("there is no story %q", name)
	}
	var err error
	switch {
	case slices.Contains(withoutTarget, p.fault.Kind):
		if target != "" {
			err = fmt.Errorf("%s has no target", kind)
		}
	case slices.Contains(ofKinds, p.fault.Kind):
		if p.fault.Key.Resource = target; target == "" || strings.Contains(target, " ") {
			err = fmt.Errorf("%s needs a kind", kind)
		}
	case p.fault.Kind == proxy.SlowWebhook:
		if p.fault.Key.Object = target; !slices.Contains(namespaces, target) {
			err = fmt.Errorf("%s needs a namespace", kind)
		}
	case slices.Contains(slices.Concat(proxy.OfWrites, proxy.OfEvents, stories[at].ofComponents()), p.fault.Kind):
		p.fault.Key, err = proxy.ParseKey(target)
	default:
		err = fmt.Errorf("there is no fault %q in the story %q", kind, name)
	}
	return p, err
}

// plansOf returns all plans of a story, whose reference has been recorded.
func plansOf(s story, ref reference) []plan {
	name, all := s.name, []plan(nil)
	add := func(kinds []proxy.Kind, keys ...proxy.Key) {
		for _, key := range keys {
			for _, kind := range kinds {
				all = append(all, plan{story: name, fault: proxy.Fault{Kind: kind, Key: key}})
			}
		}
	}
	add(proxy.OfWrites, ref.writes...)
	add(proxy.OfEvents, ref.events...)
	var resources []string
	for _, event := range ref.events {
		if !slices.Contains(resources, event.Resource) {
			resources = append(resources, event.Resource)
			add(proxy.OfWatches, proxy.Key{Resource: event.Resource})
		}
	}
	add(ofProcesses, proxy.Key{})
	for _, c := range s.components {
		add(c.faults(), ref.ofComponents[c.prefix]...)
	}
	if s.large {
		return all
	}
	add([]proxy.Kind{proxy.Lagging}, proxy.Key{})
	for _, namespace := range consumers {
		if slices.ContainsFunc(ref.writes, func(key proxy.Key) bool { return namespaceOf(key.Object) == namespace }) {
			add([]proxy.Kind{proxy.SlowWebhook}, proxy.Key{Object: namespace})
		}
	}
	return append(all, apiPlans(name, ref)...)
}

// choose returns n of the plans, in an order that depends on the seed only. Kinds of faults
// take turns, and within a kind the stories do.
func choose(all []plan, n int, seed uint64, without ...proxy.Kind) []plan {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeatable
	shuffled := slices.Clone(all)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	counts, turns := map[string]int{}, map[plan]int{}
	var chosen []plan
	for _, p := range shuffled {
		if slices.Contains(without, p.fault.Kind) {
			continue
		}
		id := p.story + " " + string(p.fault.Kind)
		turns[p] = counts[id]
		counts[id]++
		chosen = append(chosen, p)
	}
	// The first plan of each kind and story, then the second, and so on; each time in an order
	// in which the kinds alternate.
	slices.SortStableFunc(chosen, func(a, b plan) int { return turns[a] - turns[b] })
	var order []plan
	for len(chosen) > 0 {
		taken := map[proxy.Kind]bool{}
		chosen = slices.DeleteFunc(chosen, func(p plan) bool {
			if taken[p.fault.Kind] {
				return false
			}
			taken[p.fault.Kind] = true
			order = append(order, p)
			return true
		})
	}
	return order[:min(n, len(order))]
}
