package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/witness"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// step is one action of an admin.
type step struct {
	what string
	do   func(ctx context.Context) error
	// joins and leaves are the clusters that the Placement chooses, or no longer chooses,
	// from then on.
	joins, leaves []string
	// moves are clusters that leave and come back within the action.
	moves []string
}

// measure does an action and records what it took from clusters that stayed chosen.
// chosen is the part of the expectation that it changes; gap follows that Placement's slices.
func (b *bench) measure(ctx context.Context, s step, chosen map[string]bool, gap *witness.Log) error {
	kept := maps.Clone(chosen)
	for _, name := range slices.Concat(s.joins, s.leaves, s.moves) {
		delete(kept, name)
	}
	began := time.Now()
	if err := s.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	for _, name := range s.joins {
		chosen[name] = true
	}
	for _, name := range s.leaves {
		delete(chosen, name)
	}
	note := ""
	if err := b.settle(ctx); err != nil {
		note = err.Error()
		if err := b.ready(ctx); err != nil {
			return err
		}
	}
	b.record(s.what, began, kept, gap, note)
	return ctx.Err()
}

// record adds what was lost since the action began.
func (b *bench) record(what string, began time.Time, kept map[string]bool, gap *witness.Log, note string) {
	lost := func(log *witness.Log) Lost {
		absences := log.Since(began, kept)
		return Lost{Clusters: witness.Different(absences), Longest: witness.Longest(absences)}
	}
	a := Action{
		What: what, Kept: len(kept), Gap: lost(gap), Addons: lost(b.addons), Profiles: lost(b.seen.Profiles),
		References: lost(b.seen.References), Copies: lost(b.seen.Copies), Note: note,
	}
	for _, name := range b.cleanups.CreatedSince(began) {
		if kept[name] {
			a.Cleanups++
		}
	}
	for _, log := range []*witness.Log{gap, b.addons, b.seen.Profiles, b.seen.References, b.seen.Copies} {
		a.Settled = max(a.Settled, log.Changed().Sub(began))
	}
	b.result.Actions = append(b.result.Actions, a)
	b.say("%-60s in no slice %s, addons %s, profiles %s, references %s, copies %s, clean-ups %d, settled %.1f s %s",
		what, a.Gap, a.Addons, a.Profiles, a.References, a.Copies, a.Cleanups, a.Settled.Seconds(), a.Note)
}

// toInstall makes the chart's Placement choose all clusters, and no other.
func (b *bench) toInstall(ctx context.Context) error {
	return b.enable(ctx, b.names)
}

func (b *bench) enable(ctx context.Context, clusters []string) error {
	want := setOf(clusters...)
	var off, on []string
	for name := range b.accounts {
		switch {
		case want[name] && !b.now.enabled[name]:
			on = append(on, name)
		case !want[name] && b.now.enabled[name]:
			off = append(off, name)
		}
	}
	b.now.enabled = want
	if err := b.label(ctx, enabledLabel, false, off...); err != nil {
		return err
	}
	if err := b.label(ctx, enabledLabel, true, on...); err != nil {
		return err
	}
	b.say("the chart's Placement is to choose %d clusters", len(want))
	return b.ready(ctx)
}

// moves are the actions with which clusters join and leave a Placement that chooses by a
// label.
func (b *bench) moves(label string) []step {
	on := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error { return b.label(ctx, label, true, clusters...) }
	}
	off := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error { return b.label(ctx, label, false, clusters...) }
	}
	swap := func(in, out string) func(context.Context) error {
		return func(ctx context.Context) error {
			return simulated.Each(ctx, 2, func(ctx context.Context, i int) error {
				return b.label(ctx, label, i == 0, []string{in, out}[i])
			})
		}
	}
	first, last, middle := b.front[0], b.back[0], b.names[len(b.names)/2]
	return []step{
		{what: "a cluster joins in front", do: on(first), joins: []string{first}},
		{what: "it leaves in front", do: off(first), leaves: []string{first}},
		{what: "a cluster joins at the end", do: on(last), joins: []string{last}},
		{
			what: "swap: one joins in front, the last leaves", do: swap(first, last),
			joins: []string{first}, leaves: []string{last},
		},
		{
			what: "swap: one joins at the end, the first leaves", do: swap(last, first),
			joins: []string{last}, leaves: []string{first},
		},
		{what: "the last leaves", do: off(last), leaves: []string{last}},
		{what: "three join in front at once", do: on(b.front[:3]...), joins: b.front[:3]},
		{what: "they leave in front at once", do: off(b.front[:3]...), leaves: b.front[:3]},
		{
			what: "a label off and on again within a second", moves: []string{middle},
			do: func(ctx context.Context) error {
				if err := off(middle)(ctx); err != nil {
					return err
				}
				return on(middle)(ctx)
			},
		},
		{what: "a label off", do: off(middle), leaves: []string{middle}},
		{what: "and on", do: on(middle), joins: []string{middle}},
	}
}

// groups are the actions on decision groups of a Placement.
func (b *bench) groups(namespace, name string) []step {
	group := func(value string) func(context.Context) error {
		patch := `{"spec":{"decisionStrategy":null}}`
		if value != "" {
			patch = fmt.Sprintf(`{"spec":{"decisionStrategy":{"groupStrategy":{"decisionGroups":[`+
				`{"groupName":"canary","groupClusterSelector":{"labelSelector":{"matchLabels":{%q:%q}}}}]}}}}`,
				canaryLabel, value)
		}
		return func(ctx context.Context) error { return b.patchPlacement(ctx, namespace, name, patch) }
	}
	return []step{
		{what: fmt.Sprintf("a canary group of every %dth is added", canaryEvery), do: group("first")},
		{what: "the group becomes another one", do: group("second")},
		{what: "the group is removed", do: group("")},
	}
}

func (b *bench) each(ctx context.Context, steps []step, chosen map[string]bool, gap *witness.Log, prefix string) error {
	for _, s := range steps {
		s.what = prefix + s.what
		if err := b.measure(ctx, s, chosen, gap); err != nil {
			return err
		}
	}
	return nil
}

// install is an admin's work on the Placement of the install strategy.
func (b *bench) install(ctx context.Context) error {
	if err := b.toInstall(ctx); err != nil {
		return err
	}
	steps := append(b.moves(enabledLabel), b.groups(fleet.ReleaseNamespace, installedBy)...)
	one := b.names[slice-1]
	steps = append(steps, step{what: "somebody deletes one chosen cluster's addon", do: func(ctx context.Context) error {
		return b.hub.Delete(ctx, addonOf(one))
	}})
	return b.each(ctx, steps, b.now.enabled, b.installed, "install: ")
}

// toManual ends the install strategy: every cluster has the addon, also the spare ones.
func (b *bench) toManual(ctx context.Context) error {
	if b.now.enabled == nil {
		return nil
	}
	if err := b.strategy(ctx, "Manual"); err != nil {
		return err
	}
	b.now.manual, b.now.enabled = maps.Clone(b.now.enabled), nil
	var missing []string
	for name := range b.accounts {
		if !b.now.manual[name] {
			missing = append(missing, name)
			b.now.manual[name] = true
		}
	}
	return simulated.Each(ctx, len(missing), func(ctx context.Context, i int) error {
		return client.IgnoreAlreadyExists(b.hub.Create(ctx, addonOf(missing[i])))
	})
}

// publish makes the publishing Placement choose exactly these clusters.
func (b *bench) publish(ctx context.Context, clusters []string) error {
	if b.now.enabled == nil && b.now.manual == nil {
		b.now.enabled = map[string]bool{}
	}
	if err := b.toManual(ctx); err != nil {
		return err
	}
	want := setOf(clusters...)
	var off, on []string
	for name := range b.accounts {
		switch {
		case want[name] && !b.now.published[name]:
			on = append(on, name)
		case !want[name] && b.now.published[name]:
			off = append(off, name)
		}
	}
	if err := b.label(ctx, publishedLabel, true, on...); err != nil {
		return err
	}
	if err := b.label(ctx, publishedLabel, false, off...); err != nil {
		return err
	}
	b.now.published = want
	err := b.hub.Create(ctx, &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: view, Labels: map[string]string{publishLabel: "true"}},
		Spec: clusterv1beta1.PlacementSpec{
			ClusterSets: []string{Set},
			Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{publishedLabel: "true"}},
			}}},
		},
	})
	if err := client.IgnoreAlreadyExists(err); err != nil {
		return err
	}
	b.say("the publishing Placement is to choose %d clusters", len(want))
	return b.ready(ctx)
}

// publishing is a tenant's work on its publishing Placement.
func (b *bench) publishing(ctx context.Context) error {
	if err := b.publish(ctx, b.names); err != nil {
		return err
	}
	steps := append(b.moves(publishedLabel), b.groups(team, view)...)
	if err := b.each(ctx, steps, b.now.published, b.published, "publishing: "); err != nil {
		return err
	}
	return b.publishedRemovals(ctx)
}

// delays are those of a slice's writes.
var delays = []time.Duration{1500 * time.Millisecond, 5 * time.Second, forever}

// forgotten is how long a write is refused at most: longer than any controller may hold on to a
// cluster.
const forgotten = 135 * time.Second

// slowPublishing repeats joins, leaves and swaps on a publishing Placement while a slice's
// writes are slow or refused.
func (b *bench) slowPublishing(ctx context.Context) error {
	if err := b.slowDown(ctx); err != nil {
		return err
	}
	if err := b.publish(ctx, b.names); err != nil {
		return err
	}
	return b.delayed(ctx, "publishing", b.moves(publishedLabel)[:6], b.now.published, b.published)
}

// slowInstall does the same on the Placement of the install strategy.
func (b *bench) slowInstall(ctx context.Context) error {
	if err := b.slowDown(ctx); err != nil {
		return err
	}
	if b.now.enabled == nil && b.now.manual != nil {
		if err := b.toPlacements(ctx); err != nil {
			return err
		}
	}
	if err := b.toInstall(ctx); err != nil {
		return err
	}
	return b.delayed(ctx, "install", b.moves(enabledLabel)[:6], b.now.enabled, b.installed)
}

// slowDown makes a slice's writes pass the proxy, from the first call on.
func (b *bench) slowDown(ctx context.Context) (err error) {
	if b.slow == nil {
		b.slow, err = newSlowWrites(ctx, b.fleet)
	}
	return err
}

// toPlacements goes back to the install strategy, which takes the addon from the spare
// clusters, and ends the publishing Placement.
func (b *bench) toPlacements(ctx context.Context) error {
	err := b.hub.Delete(ctx, &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: view}})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	b.now.published, b.now.manual, b.now.enabled = nil, nil, setOf(b.names...)
	if err := b.label(ctx, enabledLabel, true, b.names...); err != nil {
		return err
	}
	err = await.Success(ctx, "the chart's Placement to decide", time.Minute, lookEvery, func(context.Context) error {
		return b.installed.Exactly(b.now.enabled)
	})
	if err != nil {
		return err
	}
	return b.strategy(ctx, "Placements")
}

func (b *bench) delayed(
	ctx context.Context, what string, steps []step, chosen map[string]bool, gap *witness.Log,
) error {
	for _, delay := range delays {
		if delay == forever {
			// Joins and leaves in front, a join at the end, the swap, and back.
			for _, i := range []int{0, 1, 2, 3, 1} {
				if err := b.forget(ctx, what, steps[i], chosen, gap); err != nil {
					return err
				}
			}
			continue
		}
		for _, s := range steps {
			s.what = fmt.Sprintf("%s, second slice %s late: %s", what, delay, s.what)
			b.slow.set(delay)
			err := b.measure(ctx, s, chosen, gap)
			b.slow.set(0)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forget refuses a slice's writes until what rests on them must be gone, then lets the
// Placement be decided again.
func (b *bench) forget(
	ctx context.Context, what string, s step, chosen map[string]bool, gap *witness.Log,
) error {
	kept := maps.Clone(chosen)
	for _, name := range slices.Concat(s.joins, s.leaves, s.moves) {
		delete(kept, name)
	}
	b.slow.set(forever)
	defer b.slow.set(0)
	began := time.Now()
	if err := s.do(ctx); err != nil {
		return err
	}
	for _, name := range s.joins {
		chosen[name] = true
	}
	for _, name := range s.leaves {
		delete(chosen, name)
	}
	// There is nothing to wait for if every cluster is in a slice.
	enough := time.NewTimer(5 * time.Second)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	note := fmt.Sprintf("%d writes refused", b.slow.delayed())
	if away := gap.Since(began, kept); len(away) > 0 {
		one := setOf(away[0].Name)
		waiting, cancel := context.WithTimeout(ctx, forgotten)
		_ = await.Until(waiting, "what rests on the slice to go", lookEvery, func(context.Context) (bool, error) {
			return len(b.seen.Profiles.Since(began, one)) > 0 && len(b.seen.Copies.Since(began, one)) > 0, nil
		})
		cancel()
		note += b.after(began, kept, gap)
	}
	b.slow.set(0)
	namespace, name := team, view
	if gap == b.installed {
		namespace, name = fleet.ReleaseNamespace, installedBy
	}
	nudge := fmt.Sprintf(`{"metadata":{"annotations":{"bench.example/nudge":%q}}}`, time.Now().String())
	if err := b.patchPlacement(ctx, namespace, name, nudge); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		note += "; " + err.Error()
	}
	b.record(fmt.Sprintf("%s, second slice refused: %s", what, s.what), began, kept, gap, note)
	return ctx.Err()
}

// after says how long after it was in no slice a cluster lost what.
func (b *bench) after(began time.Time, kept map[string]bool, gap *witness.Log) string {
	from := gap.Since(began, kept)[0]
	one := map[string]bool{from.Name: true}
	told := ""
	for _, part := range []struct {
		what string
		log  *witness.Log
	}{{"addon", b.addons}, {"profile", b.seen.Profiles}, {"reference", b.seen.References}, {"copy", b.seen.Copies}} {
		if lost := part.log.Since(began, one); len(lost) > 0 {
			told += fmt.Sprintf("; %s gone after %.1f s", part.what, lost[0].From.Sub(from.From).Seconds())
		}
	}
	return told
}
