package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// limits are how long a run may take to reach its state after the fault, by its kind: a write
// may be retried after a minute, a manager that starts may wait a minute for objects to be
// restored, and clients list again up to three minutes after a restart of the API server.
func limitOf(kind proxy.Kind) time.Duration {
	restarts := slices.Concat(proxy.OfNamespaces, proxy.OfStarts, ofRecreated, []proxy.Kind{restarted, restored})
	if slices.Contains(restarts, kind) {
		return apitest.RestartPatience
	}
	return 100 * time.Second
}

// lasts is how long after it began a fault has an effect.
func lasts(kind proxy.Kind) time.Duration {
	switch kind {
	case proxy.Hang:
		return proxy.HangFor
	case proxy.EventDelayed:
		return proxy.DelayFor
	case proxy.EventDropped:
		return proxy.DropFor
	default:
		return proxy.SlowFor[kind]
	}
}

// running is one run of a story.
type running struct {
	lane     *lane
	story    story
	world    *world
	managers []*manager
	// components are those of Open Cluster Management's that run.
	components []upstream
	// lost are the objects that went with a CRD, as in a state.
	lost []string
}

// run plays a story with a fault on a clean hub, with the manager of the run before, if there is
// one. ref is nil if the run is to make a reference. A failure of anything but the manager ends
// the test or is returned. calm is for how long nothing may be written in the end.
func (l *lane) run(tb testing.TB, s story, fault proxy.Fault, ref *reference, calm time.Duration) (result, error) {
	tb.Helper()
	prefix, itself := divided(fault)
	if prefix != "" {
		fault = proxy.Fault{Kind: proxy.None} // of the manager
	}
	isElected := slices.Contains(l.writer.elects, fault.Kind)
	first, second := l.versionsOf(tb, fault.Kind)
	switch {
	case l.spoiled:
		l.renew()
	case isElected || slices.Contains(ofPrograms, fault.Kind) || l.writer.fresh:
		l.discard()
	}
	from := l.left
	if l.left = nil; from == nil || from.story.name != s.name {
		from = nil
		l.discardComponents(s.components)
		if err := l.reset(tb.Context()); err != nil {
			return result{}, err
		}
		l.serve(tb, s)
	}
	r := &running{lane: l, story: s, world: newWorld(l.hub.In(tb))}
	prepare, setup := l.writer.prepare, s.setup
	if from != nil {
		r.world.tokens, r.world.wrote = from.world.tokens, from.world.wrote
		prepare, setup = func(*lane, *world) {}, s.undo
		l.watcher.restart()
	}
	r.world.patience = max(stepPatience, limitOf(fault.Kind))
	defer r.end(fault.Kind, itself.Kind)
	prepare(l, r.world)
	for _, c := range s.components {
		r.components = append(r.components, l.component(tb, c))
	}
	defer r.startSpokes(tb)()
	isNew := isElected || l.manager == nil
	var ended []string
	if isElected {
		r.managers = []*manager{l.manage(first, elect)}
	} else {
		if l.manager == nil {
			l.manager = l.manage(first)
		}
		r.managers = []*manager{l.manager}
		ended, _, _ = l.manager.report() // while the hub was emptied
		l.manager.forget()
	}
	setup(r.world)
	before := target{pairs: s.before, copies: s.copies(s.before), still: quiet}
	if isNew && ref == nil {
		before.still = starting
	}
	after := target{pairs: s.after, copies: s.copies(s.after), still: quiet}
	if ref != nil {
		before.state, before.still = ref.before, still
		after.state, after.still = ref.after, still
	}
	if isNew && l.program != "" {
		before.still = starting // until then it trusts no absence, which hides what a patch takes away
	}
	if fault.Kind == upgraded {
		// Their content is the next version's.
		before.names, before.state, before.still = before.state, nil, quiet
	}
	after.still = max(after.still, s.calm)
	if err := r.await(tb.Context(), before, setupLimit+s.patience); err != nil {
		return result{}, fmt.Errorf("the state before the fault: %w%s", err, r.why(before.state))
	}
	if isElected {
		r.managers = append(r.managers, l.manage(second, elect))
		if err := r.await(tb.Context(), before, setupLimit+s.patience); err != nil {
			return result{}, fmt.Errorf("the state with a standby: %w%s", err, r.why(before.state))
		}
	}
	got := result{fault: fault, before: r.state(), setup: l.watcher.seen(0), exits: ended}
	mark := len(got.setup)
	if slices.Contains(proxy.OfStarts, fault.Kind) {
		if err := l.remember(tb); err != nil {
			return result{}, err
		}
	}
	for _, m := range r.managers {
		m.proxy.Begin(fault, m.kill)
	}
	r.begin(prefix, itself)
	defer r.wake(tb)()
	if fault.Kind == restored {
		if err := r.restore(tb, before); err != nil {
			if !errors.Is(err, errNotReached) {
				return result{}, err
			}
			got.problems = []string{"the state after the restore: " + err.Error() + r.why(before.state)}
		}
		// The watcher is another one, which has seen nothing of what was lost.
		mark, got.setup = l.watcher.mark(), l.watcher.seen(0)
		for _, m := range r.managers {
			m.proxy.Begin(fault, nil)
		}
	}
	got.began = time.Now()
	r.world.came = got.began
	if err := r.act(tb, fault); err != nil {
		return result{}, err
	}
	limit := limitOf(fault.Kind) + s.patience
	if len(r.world.missed) > 0 {
		limit = after.still + quiet // it is a finding already
	}
	holds := []func() bool{func() bool {
		fired := r.record().Fired
		return fired.IsZero() || time.Since(fired) >= lasts(itself.Kind)
	}, func() bool {
		return !slices.ContainsFunc(r.managers, func(m *manager) bool { return m.proxy.Lags() })
	}}
	if slices.Contains(slices.Concat(ofAPIs, ofUpdates), fault.Kind) {
		by := l.past(tb)
		holds = append(holds, func() bool { return l.hasSeen(tb.Context(), by, fault.Key.Resource) })
	}
	err := r.await(tb.Context(), after, limit, holds...)
	if err != nil && !errors.Is(err, errNotReached) {
		return result{}, err
	}
	got.converged, got.took, got.peak = err == nil, time.Since(got.began), r.peak()
	sent := len(r.record().Writes)
	if got.converged {
		if err := pause(tb.Context(), calm); err != nil {
			return result{}, err
		}
	}
	got.record, got.after, got.changes = r.record(), r.state(), l.watcher.seen(mark)
	got.sent = r.sent()
	if got.converged {
		got.late = lateWrites(got.record.Writes[sent:], fault)
		got.converged = ref == nil || maps.Equal(got.after, ref.after)
	}
	markLost(got.changes, r.lost)
	got.lost = r.lost
	if slices.Contains(ofVersions, fault.Kind) {
		got.versions = len(r.managers)
	}
	got.lagged = slices.Contains(proxy.OfStarts, fault.Kind)
	if slices.Contains(proxy.OfNamespaces, fault.Kind) {
		got.slow = fault.Key.Object
	}
	if slices.Contains(ofAPIs, fault.Kind) {
		got.api = fault.Key.Resource
	}
	got.tokens, got.wrote, got.races, got.outdated = r.world.tokens, r.world.wrote, s.races, s.outdated
	got.ordered = fault.Kind != restored // which may use a version twice
	got.causes = r.causes(got.began)
	got.waited = slices.ContainsFunc(r.world.steps, func(since time.Time) bool { return !since.Before(got.began) })
	got.problems = append(got.problems, r.world.missed...)
	if slices.Contains(slices.Concat(ofProcesses, ofPrograms, ofAPIs, ofUpdates), fault.Kind) {
		got.record.Fired = time.Now()
	}
	if fault.Kind == restarted || fault.Kind == restored {
		got.unanswered = unanswered(got.record.Writes)
	}
	if s.undo != nil && got.converged && leavesAlone(itself.Kind) {
		l.left = r
	}
	return got, r.report(&got, fault.Kind)
}

// remember makes the manager's proxy show the present when the API server lags.
func (l *lane) remember(tb testing.TB) error {
	tb.Helper()
	list := &corev1.NamespaceList{}
	err := l.admin.List(tb.Context(), list, client.Limit(1))
	l.manager.proxy.Past(list.ResourceVersion)
	return err
}

// elect makes managers agree on a leader.
const elect = "--leader-elect=true"

// end makes the next run start programs where those of this one may not be as before. The fault itself may be a
// component's, and then the manager had none.
func (r *running) end(fault, itself proxy.Kind) {
	if r.world.T.Failed() || slices.Contains(slices.Concat(ofProcesses, ofPrograms), fault) {
		r.lane.discard()
	}
	for _, m := range r.managers {
		if m != r.lane.manager {
			m.end()
			continue
		}
		m.proxy.Begin(proxy.Fault{Kind: proxy.None}, nil)
	}
	if !leavesAlone(itself) {
		r.lane.discardComponents(nil)
	}
	for _, c := range r.lane.components {
		c.proxy.Begin(proxy.Fault{Kind: proxy.None}, nil)
	}
}

// report adds what the managers say, and returns an error if something else than they went
// wrong.
func (r *running) report(got *result, fault proxy.Kind) error {
	var errs []error
	for _, m := range r.managers {
		exits, log, err := m.report()
		got.exits = append(got.exits, slices.DeleteFunc(exits, func(how string) bool { return mayEnd(fault, how) })...)
		got.log += log
		got.bodies = append(got.bodies, m.proxy.Bodies()...)
		errs = append(errs, err, m.proxy.Broken())
	}
	for _, c := range r.components {
		_, _, err := c.report()
		errs = append(errs, err, c.proxy.Broken())
	}
	got.logs = r.logs()
	return errors.Join(errs...)
}

// mayEnd reports whether a manager ends by itself because it no longer leads, because of what a restored hub
// has lost, or because it was started while the hub was away.
func mayEnd(fault proxy.Kind, how string) bool {
	_, isPaused := pauseFor[fault]
	isOutage := fault == restarted || fault == restored
	says := func(text string) bool { return strings.Contains(how, text) }
	switch {
	case says("panic: "):
		return false
	case says("leader election lost"): // also while the API server knows no roles yet
		return isPaused || isOutage
	case says("manager: connecting to the hub"):
		return isOutage
	default:
		return fault == restored && says("restored: this manager writes nothing more")
	}
}

// causes returns the earliest times at which something may have happened because of which a manager takes something
// away: the act began, the effect of a step had come so that the next could begin, or a manager was started.
func (r *running) causes(act time.Time) []time.Time {
	all := append([]time.Time{act}, r.world.steps...)
	for _, m := range r.managers {
		all = append(all, m.began()...)
	}
	return all
}

// act plays the story, and does to the processes what the fault says.
func (r *running) act(tb testing.TB, fault proxy.Fault) error {
	tb.Helper()
	switch fault.Kind {
	case paused, paused2s, paused60s:
		return r.pauseLeader(tb.Context(), pauseFor[fault.Kind])
	case upgraded, rolledBack:
		return r.replaceLeader(tb, fault.Kind == rolledBack)
	case restarted:
		r.story.act(r.world)
		r.outage(func() { r.lane.server.Snapshot(tb) })
	case unserved:
		return r.unserve(tb, fault.Key.Resource)
	case recreated, recreated10s:
		return r.recreate(tb, fault)
	case newVersion, newField:
		return r.updateCRD(tb, fault)
	default:
		r.story.act(r.world)
	}
	return nil
}

// pauseLeader plays the story while the leader is paused, and waits until it is not.
func (r *running) pauseLeader(ctx context.Context, duration time.Duration) error {
	leader := r.managers[0]
	if err := leader.pause(); err != nil {
		return err
	}
	resumed := make(chan error, 1)
	go func() { resumed <- errors.Join(pause(ctx, duration), leader.resume()) }()
	r.story.act(r.world)
	return <-resumed
}

// lostMark ends the name of a token that the restored hub does not have.
const lostMark = ", lost"

// restore plays the story, then puts etcd back to before it, and waits for the state before.
func (r *running) restore(tb testing.TB, before target) error {
	tb.Helper()
	var data string
	r.outage(func() { data = r.lane.server.Snapshot(tb) })
	wrote := map[string][]string{}
	for of, values := range r.world.wrote {
		wrote[of] = slices.Clone(values)
	}
	r.story.act(r.world)
	for token, name := range r.world.tokens {
		of, number, _ := strings.Cut(name, "#")
		if !slices.Contains(wrote[of], number) {
			r.world.tokens[token] = name + lostMark
		}
	}
	r.outage(func() { r.lane.server.Restore(tb, data, nil) })
	for _, c := range r.components {
		c.kill() // its caches would be of the lost state, which is not what is tested
	}
	r.world.wrote = wrote
	r.lane.watch()
	if r.world.spokes != nil {
		r.world.spokes.sees(r.lane.watcher)
	}
	return r.await(tb.Context(), before, apitest.RestartPatience)
}

// outage calls a function while which the API server is away.
func (r *running) outage(during func()) {
	for _, m := range r.programs() {
		m.proxy.Outage(true)
		defer m.proxy.Outage(false)
	}
	during()
}

func (r *running) state() map[string]string {
	state := r.lane.watcher.state(r.world.tokens)
	if r.story.runs(placementController) {
		joinSlices(state)
	}
	return state
}

// programs are all that run.
func (r *running) programs() []*manager {
	all := slices.Clone(r.managers)
	for _, c := range r.components {
		all = append(all, c.manager)
	}
	return all
}

// record is that of all managers together; the fault may be a component's.
func (r *running) record() proxy.Record {
	var all proxy.Record
	for _, m := range r.managers {
		one := m.proxy.Record()
		all.Writes = append(all.Writes, one.Writes...)
		all.Events = append(all.Events, one.Events...)
		if all.Fired.IsZero() {
			all.Fired = one.Fired
		}
	}
	for _, c := range r.components {
		if all.Fired.IsZero() {
			all.Fired = c.proxy.Record().Fired
		}
	}
	return all
}

// lateWrites returns the writes that count as such. Two may happen once for each object: while an event is
// missing for as long as the manager waits for it (kube.StaleAfter), or longer, it tries to write from its cache
// what it seems to lack, and the API server refuses that as a conflict, or finds no such object; and after five
// seconds it tries again to delete an object that its cache still shows, and finds none.
func lateWrites(writes []proxy.Write, fault proxy.Fault) []proxy.Write {
	isMissing := fault.Kind == proxy.EventDropped || fault.Kind == proxy.EventDelayed
	isOfWatch := slices.Contains(proxy.OfWatches, fault.Kind)
	excused := map[proxy.Key]bool{}
	return slices.DeleteFunc(slices.Clone(writes), func(w proxy.Write) bool {
		kind, _, _ := strings.Cut(w.Key.Resource, "/")
		isRefused := isMissing && w.Key.Object == fault.Key.Object &&
			(w.Code == http.StatusConflict || w.Code == http.StatusNotFound)
		isGone := isOfWatch && w.Key.Verb == "delete" && w.Code == http.StatusNotFound
		if kind != fault.Key.Resource || !isRefused && !isGone {
			return false
		}
		of := w.Key
		of.N = 0
		again := excused[of]
		excused[of] = true
		return !again
	})
}

// peak is the most memory that one of the managers has had, in MiB.
func (r *running) peak() int {
	most := 0
	for _, m := range r.managers {
		most = max(most, m.peak())
	}
	return most
}

// unanswered returns how many writes got no answer.
func unanswered(writes []proxy.Write) int {
	n := 0
	for _, write := range writes {
		if write.Code == 0 {
			n++
		}
	}
	return n
}

// target is what a run waits for.
type target struct {
	// state is that of the reference; nil if there is none. names are objects of which only the names matter.
	state, names map[string]string
	// pairs are those that have a complete profile, and copies the copies of tokens.
	pairs, copies []string
	// still is for how long the managers must have written nothing.
	still time.Duration
}

// await waits until the hub is as it should be, the managers have been still, and more holds.
func (r *running) await(ctx context.Context, want target, limit time.Duration, more ...func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotReached)
	defer cancel()
	began := time.Now()
	for {
		reached := time.Since(began) >= want.still
		for _, m := range r.programs() {
			reached = reached && time.Since(m.proxy.LastWrite()) >= want.still
		}
		for _, holds := range more {
			reached = reached && holds()
		}
		if reached && r.is(want) {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return err
		}
	}
}

// is reports whether the hub is as it should be.
func (r *running) is(want target) bool {
	state := r.state()
	pairs, copies := shown(state)
	return slices.Equal(pairs, sorted(want.pairs)) && slices.Equal(copies, sorted(want.copies)) &&
		(want.state == nil || maps.Equal(state, want.state)) &&
		(want.names == nil || maps.EqualFunc(state, want.names, func(string, string) bool { return true })) &&
		r.lane.watcher.ownersExist() && r.lane.writer.ready(r, state)
}

// shown returns, sorted, the pairs that have a profile or the claims, and the copies of tokens.
func shown(state map[string]string) (pairs, copies []string) {
	for id := range state {
		resource, key, _ := strings.Cut(id, " ")
		switch {
		case isForeign(key):
		case published[resource] != "":
			pairs = append(pairs, key)
		case resource == secrets && !isOfCluster(namespaceOf(key)):
			copies = append(copies, key)
		}
	}
	return sorted(pairs), sorted(copies)
}

func sorted(keys []string) []string { return slices.Sorted(slices.Values(keys)) }

// why says how the state differs, and what the programs logged last.
func (r *running) why(want map[string]string) string {
	text := ""
	if want != nil {
		text = "\n" + cmp.Diff(want, r.state())
	}
	return text + "\n" + r.logs()
}

// logs are the ends of the programs' logs.
func (r *running) logs() string {
	var texts []string
	add := func(name string, m *manager) {
		_, log, _ := m.report()
		texts = append(texts, name+" logged, at the end:\n"+tail(log))
	}
	for _, m := range r.managers {
		add("the manager", m)
	}
	for _, c := range r.components {
		add(c.name, c.manager)
	}
	return strings.Join(texts, "\n")
}

// tail is the end of a log.
func tail(log string) string {
	const most = 1 << 13
	return log[max(0, len(log)-most):]
}

// reference plays a story twice without a fault. Problems are why that is no reference.
func (l *lane) reference(tb testing.TB, s story) (ref reference, problems []string) {
	tb.Helper()
	none := proxy.Fault{Kind: proxy.None}
	play := func(ref *reference) (result, []string) {
		got, err := l.run(tb, s, none, ref, 0)
		switch {
		case errors.Is(err, errNotReached):
			return got, []string{err.Error()}
		case err != nil:
			tb.Fatal(err)
		case !got.converged:
			pairs, copies := shown(got.after)
			wanted := fmt.Sprintf("the state after the story: %v: it has the profiles %v and the copies %v; want %v and %v\n%s",
				errNotReached, pairs, copies, sorted(s.after), sorted(s.copies(s.after)), got.logs)
			if ref != nil {
				wanted += "\nit differs from that of the first run (-first +second):\n" + cmp.Diff(ref.after, got.after)
			}
			return got, append(slices.Clone(got.problems), wanted)
		}
		return got, invariants(s, got)
	}
	first, problems := play(nil)
	if s.large {
		tb.Log(first.costs())
	}
	if len(problems) > 0 {
		return ref, problems
	}
	ref, _ = merge(first, first)
	second, problems := play(&ref)
	if s.large {
		tb.Log(second.costs())
	}
	if len(problems) > 0 {
		return ref, problems
	}
	return merge(first, second)
}
