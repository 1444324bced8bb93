package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of processes, while the story runs. None of them has a target.
const (
	// The leading manager is stopped for pauseFor, while another one stands by.
	paused    proxy.Kind = "leader-paused"
	paused2s  proxy.Kind = "leader-paused-2s"
	paused60s proxy.Kind = "leader-paused-60s"
	// restarted kills the API server and etcd, and starts them again.
	restarted proxy.Kind = "hub-restarted"
	// restored puts etcd back to before the story, after it. The story is then repeated.
	restored proxy.Kind = "hub-restored"
)

// ofLeaders are those of the leader among managers.
var ofLeaders = append([]proxy.Kind{paused, paused2s, paused60s}, ofVersions...)

// ofPrograms are those for which a run needs a manager of its own.
var ofPrograms = slices.Concat(ofLeaders, ofClocks, ofTimestamps)

// ofProcesses are all faults of processes.
var ofProcesses = append(slices.Clone(ofLeaders), restarted, restored)

// ofKinds are the faults whose target is a kind.
var ofKinds = slices.Concat(proxy.OfWatches, ofAPIs, ofUpdates)

// withoutTarget are the faults of the whole program, and none.
var withoutTarget = slices.Concat(ofProcesses, proxy.OfStarts, ofClocks, ofTimestamps, []proxy.Kind{proxy.None})

// pauseFor is how long a leader is paused. Without renewing its Lease, a manager leads for less than
// 25 seconds, and for more than two.
var pauseFor = map[proxy.Kind]time.Duration{paused: 25 * time.Second, paused2s: 2 * time.Second, paused60s: time.Minute}

// The longest faults have plans only in a few stories, so that all plans together do not take too long.
var (
	longest        = []proxy.Kind{paused60s, proxy.Lagging60s, proxy.SlowWebhook29s}
	longestStories = []string{"rotate", "unbind", "move"}
)

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
	case slices.Contains(proxy.OfNamespaces, p.fault.Kind):
		return fmt.Sprintf("%s %s %s", p.story, p.fault.Kind, p.fault.Key.Object)
	default:
		return fmt.Sprintf("%s %s %s", p.story, p.fault.Kind, p.fault.Key)
	}
}

// parsePlan reads what String returns, of a plan with one of some stories.
func parsePlan(stories []story, text string) (plan, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	kind, target, _ := strings.Cut(rest, " ")
	p := plan{story: name, fault: proxy.Fault{Kind: proxy.Kind(kind)}}
	of, known := storyNamed(stories, name)
	if !known {
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
	case slices.Contains(proxy.OfNamespaces, p.fault.Kind):
		if p.fault.Key.Object = target; !slices.Contains(namespaces, target) {
			err = fmt.Errorf("%s needs a namespace", kind)
		}
	case slices.Contains(slices.Concat(proxy.OfWrites, proxy.OfEvents, of.ofComponents()), p.fault.Kind):
		p.fault.Key, err = proxy.ParseKey(target)
	default:
		err = fmt.Errorf("there is no fault %q in the story %q", kind, name)
	}
	return p, err
}

// plansOf returns all plans of a story, whose reference has been recorded. APIs are those that may come
// and go.
func plansOf(s story, ref reference, apis ...api) []plan {
	if s.sample != "" {
		return sampleOf(s, ref)
	}
	name := s.name
	var all []plan
	add := func(kinds []proxy.Kind, keys ...proxy.Key) {
		for _, key := range keys {
			for _, kind := range kinds {
				if slices.Contains(longest, kind) && !slices.Contains(longestStories, name) {
					continue
				}
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
	add(proxy.OfStarts, proxy.Key{})
	add(ofTimestamps, proxy.Key{})
	if slices.Contains(clockStories, name) {
		add(ofClocks, proxy.Key{})
	}
	for _, namespace := range consumers {
		if slices.ContainsFunc(ref.writes, func(key proxy.Key) bool { return namespaceOf(key.Object) == namespace }) {
			add(proxy.OfNamespaces, proxy.Key{Object: namespace})
		}
	}
	if len(s.components) > 0 {
		apis = withoutOCMs(apis)
	}
	return append(all, apiPlans(name, ref, apis)...)
}

// shuffled returns all in an order that depends on the seed only.
func shuffled[T any](all []T, seed uint64) []T {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeatable
	order := slices.Clone(all)
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// chooseStories returns the stories for n plans, one for every eight: a story costs two runs without a
// fault. The choice depends on the seed only.
func chooseStories(all []story, n int, seed uint64) []story {
	const plansEach = 8
	return shuffled(all, seed)[:min(len(all), (n+plansEach-1)/plansEach)]
}

// choose returns n of the plans, in an order that depends on the seed only. Kinds of faults take turns, and within a
// kind the stories do. The first kind is the one at position from, modulo their number.
func choose(all []plan, n int, seed uint64, from int, without ...proxy.Kind) []plan {
	counts, turns := map[string]int{}, map[plan]int{}
	byKind := map[proxy.Kind][]plan{}
	total := 0
	for _, p := range shuffled(all, seed) {
		if slices.Contains(without, p.fault.Kind) {
			continue
		}
		id := p.story + " " + string(p.fault.Kind)
		turns[p] = counts[id]
		counts[id]++
		byKind[p.fault.Kind] = append(byKind[p.fault.Kind], p)
		total++
	}
	for _, plans := range byKind {
		slices.SortStableFunc(plans, func(a, b plan) int { return turns[a] - turns[b] })
	}
	kinds := shuffled(slices.Sorted(maps.Keys(byKind)), seed)
	var order []plan
	for i := from; len(order) < min(n, total); i++ {
		kind := kinds[i%len(kinds)]
		if plans := byKind[kind]; len(plans) > 0 {
			order = append(order, plans[0])
			byKind[kind] = plans[1:]
		}
	}
	return order
}
