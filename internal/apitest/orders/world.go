package orders

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// World is what does not change from state to state.
type World struct {
	Scenario

	// Rule is the manager's, with its Definitions. It reads the state that is explored.
	Rule        *selection.Rule
	Definitions *watch.Definitions

	// Cache and Live read that state.
	Cache, Live *View

	// Part is what another package adds; nil for profiles alone.
	Part Part

	now *State

	added [kinds][]toolscache.ResourceEventHandler // are notified of new objects in the caches
}

// Part is what another package adds to the world.
type Part interface {
	// Start returns what the manager remembers when it starts, under names of its own.
	Start(w *World) map[string]any

	// Stop ends what was in progress.
	Stop(s *State)

	// Steps returns what may happen next.
	Steps(w *World, s *State) []Step

	// Delivered is called after an event of a kind, which the cache shows now.
	// before is what the cache showed until then.
	Delivered(w *World, s *State, kind Kind, key types.NamespacedName, before client.Object)

	// Idle reports whether nothing is in progress.
	Idle(s *State) bool

	// Check returns what is wrong in a state in which nothing more will happen.
	Check(w *World, s *State) error

	// References returns the references of the manager; nil without any.
	References(s *State) ProfileReferences
}

// ProfileReferences is what inventory.Reconciler asks the writer of PlacementDecisions.
type ProfileReferences interface {
	Refer(ctx context.Context, pair types.NamespacedName) selection.Answer
}

// Step is something that may happen. Do changes the state that it is given, and returns what
// must not happen, if it does.
type Step struct {
	Name string
	Do   func(s *State) error
}

// Violation is what must not happen.
type Violation struct {
	What string // the invariant
	How  string
}

// Error implements error.
func (v *Violation) Error() string { return v.What + ": " + v.How }

// Violated returns a Violation.
func Violated(what, format string, args ...any) error {
	return &Violation{What: what, How: fmt.Sprintf(format, args...)}
}

// Now implements clock.PassiveClock with the state's time.
func (w *World) Now() time.Time { return w.now.Time() }

// Since implements clock.PassiveClock.
func (w *World) Since(t time.Time) time.Duration { return w.Now().Sub(t) }

// State returns the state that is explored.
func (w *World) State() *State { return w.now }

// newWorld returns a world and its first state.
func newWorld(scenario Scenario, part Part) (*World, *State) {
	w := &World{Scenario: scenario, Part: part}
	w.Cache = &View{world: w, indexes: map[string]client.IndexerFunc{}}
	w.Live = &View{world: w, live: true}
	first := &State{exclusiveOnly: scenario.ExclusiveOnly}
	scenario.Begin(first)
	first.begin(scenario.Pairs)
	w.start(first)
	if scenario.Late != nil {
		scenario.Late(first)
		w.catchUp(first)
	}
	return w, first
}

// catchUp shows the manager all that is on the hub.
func (w *World) catchUp(s *State) {
	w.recall(s)
	for kind := range kinds {
		for s.Delivering(kind) {
			w.deliver(s, kind)
		}
	}
	for _, name := range s.definitions {
		_, _, err := w.Definitions.Refresh(context.Background(), w.Cache, name)
		Must(err)
	}
	w.remember(s)
}

// Must panics because of an error in what surrounds the search.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// memories of this package.
const (
	settling = "settling"
	changes  = "changes"
	expected = "expected"
	followed = "followed"
)

// start makes a manager start whose caches show all that is on the hub.
func (w *World) start(s *State) {
	w.now = s
	definitions := watch.NewDefinitions(w.Live, w)
	rule := selection.New(w.Cache, w.Live, definitions, w)
	rule.ExclusiveSetsOnly = w.ExclusiveOnly
	Must(rule.Prepare(context.Background()))
	s.Memory = map[string]any{
		settling: Field(rule, "settling").Interface(), changes: Field(rule, "changes").Interface(),
		expected: &kube.Expectations{},
	}
	if len(s.definitions) > 0 { // otherwise nothing changes
		s.Memory[followed] = &following{
			Field(definitions, "known").Interface(), Field(definitions, "newest").Interface().(time.Time),
		}
	}
	if w.Rule == nil {
		w.Rule, w.Definitions = rule, definitions
	}
	w.recall(s)
	if w.Part != nil {
		for name, remembered := range w.Part.Start(w) {
			s.Memory[name] = remembered
		}
	}
}

// following is what watch.Definitions remember.
type following struct {
	known  any
	newest time.Time
}

// recall makes the manager remember what it does in a state, and read that. Live reads are not
// shared between steps.
func (w *World) recall(s *State) {
	w.now = s
	for _, memory := range []string{settling, changes} {
		Field(w.Rule, memory).Set(reflect.ValueOf(s.Memory[memory]))
	}
	for _, reads := range []string{"live", "granting"} {
		Field(Field(w.Rule, reads).Interface(), "reads").SetZero()
	}
	if remembered, ok := s.Memory[followed].(*following); ok {
		Field(w.Definitions, "known").Set(reflect.ValueOf(remembered.known))
		Field(w.Definitions, "newest").Set(reflect.ValueOf(remembered.newest))
	}
}

// remember is the opposite of recall, for what is no pointer.
func (w *World) remember(s *State) {
	if remembered, ok := s.Memory[followed].(*following); ok {
		remembered.newest = Field(w.Definitions, "newest").Interface().(time.Time)
	}
}

// crash ends the manager and starts another one, whose caches are filled afresh.
func (w *World) crash(s *State) {
	s.pending = nil
	if w.Part != nil {
		w.Part.Stop(s)
	}
	for key, obj := range s.cached[Placements] {
		if s.hub[Placements][key] == nil && isPublishing(obj) && s.hasProfiles(key.Namespace) {
			s.vanished(key.Namespace, s.ticks)
		}
	}
	s.relist()
	s.note(true)
	w.start(s)
}

// steps returns all that may happen in a state.
func (w *World) steps(s *State) []Step {
	var steps []Step
	add := func(name string, do func(s *State) error) { steps = append(steps, Step{name, do}) }
	if len(w.Changes) > 0 && w.Budget > ones(s.done) {
		for i, change := range w.Changes {
			if s.done&(1<<i) == 0 && (change.If == nil || change.If(s)) {
				add("hub: "+change.Name, func(s *State) error {
					s.done |= 1 << i
					change.Do(s)
					return nil
				})
			}
		}
	}
	for kind := range kinds {
		if len(s.queue[kind]) > 0 {
			add("deliver "+kind.String(), func(s *State) error { w.deliver(s, kind); return nil })
		}
	}
	for _, pair := range w.Pairs {
		if _, isPending := s.pending[pair]; isPending {
			add("send the write of "+pair.String(), func(s *State) error { return w.send(s, pair, false) })
			if s.losses < w.Losses {
				add("send the write of "+pair.String()+", whose answer is lost", func(s *State) error {
					s.losses++
					return w.send(s, pair, true)
				})
			}
			continue
		}
		add("reconcile "+pair.String(), func(s *State) error { return w.reconcile(s, pair) })
	}
	for _, name := range s.definitions {
		add("reconcile the CRD "+name, func(s *State) error {
			_, _, err := w.Definitions.Refresh(context.Background(), w.Cache, name)
			w.remember(s)
			return err
		})
	}
	if w.Part != nil {
		steps = append(steps, w.Part.Steps(w, s)...)
	}
	if s.ticks < w.Ticks {
		add("time passes", func(s *State) error { w.pass(s, w.Tick); return nil })
	}
	if s.crashes < w.Crashes {
		add("crash", func(s *State) error { s.crashes++; w.crash(s); return nil })
	}
	return steps
}

func ones(of uint64) int {
	n := 0
	for ; of != 0; of &= of - 1 {
		n++
	}
	return n
}

func (w *World) pass(s *State, by time.Duration) {
	s.passed, s.ticks = s.passed+by, s.ticks+1
	s.note(false)
}

func (w *World) deliver(s *State, kind Kind) {
	e, before := s.deliver(kind)
	if len(s.definitions) > 0 && e.obj != nil && before == nil {
		for _, added := range w.added[kind] {
			added.OnAdd(e.obj.Object, false)
		}
		w.remember(s)
	}
	switch {
	case kind != Placements:
	case e.obj != nil:
		s.vanished(e.key.Namespace, -1) // it has returned, if it had vanished
	case before != nil && isPublishing(before):
		s.vanished(e.key.Namespace, s.ticks)
	}
	if w.Part != nil {
		w.Part.Delivered(w, s, kind, e.key, before)
	}
	w.noteDelivery(s)
}

// noteDelivery forgets what the truth said before, once the caches show all and nothing that
// was decided before is in progress.
func (w *World) noteDelivery(s *State) { s.note(s.isIdle() && (w.Part == nil || w.Part.Idle(s))) }

// verb is what a write does.
type verb string

const (
	create verb = "create"
	adopt  verb = "adopt"
	remove verb = "delete"
)

// write is a write of a profile that is decided and not sent.
type write struct {
	verb    verb
	uid     types.UID // preconditions
	version string
}

func (w *World) expectations(s *State) *kube.Expectations {
	return s.Memory[expected].(*kube.Expectations)
}

// reconcile does what inventory.Reconciler does about a pair, up to its first write.
func (w *World) reconcile(s *State, pair types.NamespacedName) error {
	ctx := context.Background()
	observation, result, err := w.Rule.Observe(ctx, pair)
	if err != nil {
		return err
	}
	next := w.next(pair, observation, result)
	isOrphaned := w.isOrphaned(s, pair, observation, result)
	acting := next == create || next == remove || isOrphaned
	result, wait, err := w.Rule.Settle(ctx, pair, observation, result, acting)
	if err != nil || wait > 0 {
		return err
	}
	w.Rule.Track(pair, result.Answer, observation.Profile)
	if next = w.settled(s, pair, observation, result, isOrphaned); next == "" {
		return nil
	}
	return w.decide(s, pair, observation, next)
}

// Referable returns what the manager remembers in a state about references to a pair's profile.
func (w *World) Referable(s *State, pair types.NamespacedName) selection.Answer {
	w.recall(s)
	return w.Rule.Referable(pair)
}

// isOrphaned is what inventory.Reconciler does under this name.
func (w *World) isOrphaned(
	s *State, pair types.NamespacedName, o selection.Observation, result selection.Result,
) bool {
	references := w.references(s)
	return references != nil && o.Profile == nil && result.Answer == selection.No &&
		!profiles.IsTerminating(o.Namespace) && references.Refer(context.Background(), pair) == selection.Yes
}

// settled returns the next step about a pair, unless that has to wait.
func (w *World) settled(
	s *State, pair types.NamespacedName, o selection.Observation, result selection.Result, isOrphaned bool,
) verb {
	var cached client.Object
	if o.Profile != nil {
		cached = o.Profile
	}
	if w.expectations(s).Wait(pair, cached, s.Time()) > 0 {
		return ""
	}
	next := w.next(pair, o, result)
	if !w.releaseFirst(s, pair, next) {
		return ""
	}
	if next != create && next != remove && next != adopt {
		w.allow(pair, o, result.Answer, next == remove || isOrphaned && result.Answer == selection.No)
		return ""
	}
	return next
}

// next is the next step about a pair's profile, "" for none.
func (w *World) next(pair types.NamespacedName, o selection.Observation, result selection.Result) verb {
	switch profiles.NextStep(profiles.Observed{Observation: o, Pair: pair}, result) {
	case profiles.Create:
		return create
	case profiles.Update:
		if !selection.IsMarked(o.Profile) {
			return adopt
		}
	case profiles.Remove:
		return remove
	}
	return ""
}

func (w *World) references(s *State) ProfileReferences {
	if w.Part == nil {
		return nil
	}
	return w.Part.References(s)
}

// releaseFirst is what inventory.Reconciler does under this name, but for the end of its wait.
func (w *World) releaseFirst(s *State, pair types.NamespacedName, next verb) bool {
	references := w.references(s)
	switch {
	case references == nil:
		return true
	case next == create:
		if w.Rule.Referable(pair) == selection.Yes {
			w.Rule.AllowReferences(pair, selection.Unknown)
		}
		return true
	case next != remove:
		return true
	}
	w.Rule.AllowReferences(pair, selection.No)
	return references.Refer(context.Background(), pair) == selection.No
}

// allow is allowReferences of inventory.Reconciler: a profile here is complete once it is marked.
func (w *World) allow(pair types.NamespacedName, o selection.Observation, answer selection.Answer, goes bool) {
	isWhole := o.Profile != nil && o.Profile.DeletionTimestamp == nil && selection.IsMarked(o.Profile)
	switch {
	case goes, profiles.IsLost(o.Profile) && !profiles.IsTerminating(o.Namespace):
		answer = selection.No
	case answer != selection.Yes || !isWhole:
		answer = selection.Unknown
	}
	w.Rule.AllowReferences(pair, answer)
}

// Invariants about profiles.
const (
	ProfileUnentitled = "a profile where no state of the hub, or of the caches, entitled to it"
	ProfileRemoved    = "a profile removed that no state of the hub, or of the caches, denied"
	ProfileUnsettled  = "a profile removed as soon as decisions lack its cluster"
	ProfileWidened    = "a profile made as soon as the last Placement is missing"
	ProfileLost       = "a profile made because a Placement vanished with its CRD"
	ProfileForeign    = "a write of a profile that is not this addon's"
	ProfileWrong      = "a profile missing or left when nothing happens any more"
	ProfileLingers    = "a profile left although nothing may bring its cluster back"
	Restless          = "writes that do not end"

	// Caches of different ages together may show what the hub never was.
	MixedMade    = "a profile made from caches of different ages"
	MixedCopied  = "a token copied because of caches of different ages"
	MixedRemoved = "a profile or copy removed because of caches of different ages"
)

// decide checks what is about to be written about a pair, and stores it.
func (w *World) decide(s *State, pair types.NamespacedName, o selection.Observation, next verb) error {
	op := write{verb: next}
	if o.Profile != nil {
		op.uid, op.version = o.Profile.UID, o.Profile.ResourceVersion
	}
	pending := make(map[types.NamespacedName]write, len(s.pending)+1)
	for key, value := range s.pending {
		pending[key] = value
	}
	pending[pair] = op
	s.pending = pending
	return w.check(s, pair, o, next)
}

func (w *World) check(s *State, pair types.NamespacedName, o selection.Observation, next verb) error {
	shown, seen := s.shown(pair), s.seen[pair]
	switch next {
	case create, adopt:
		if shown != yes {
			return Violated(ProfileUnentitled, "%s is %s by the caches", pair, shown)
		}
		if w.Tick > kube.AbsenceCounts && seen.narrowed == s.ticks && !s.narrows(pair.Namespace) {
			return Violated(ProfileWidened, "%s", pair)
		}
		if s.hasLost(pair.Namespace) {
			return Violated(ProfileLost, "%s", pair)
		}
		if !seen.yes {
			return Violated(MixedMade, "a profile for %s is to be made", pair)
		}
	case remove:
		if !IsMarked(o.Profile) {
			return Violated(ProfileForeign, "%s is to be deleted", pair)
		}
		if shown != no {
			return Violated(ProfileRemoved, "%s is %s by the caches", pair, shown)
		}
		if w.Unsettled(s, pair) {
			return Violated(ProfileUnsettled, "%s", pair)
		}
		if !seen.no {
			return Violated(MixedRemoved, "the profile of %s is to be deleted", pair)
		}
	}
	return nil
}

// Unsettled reports whether only decisions deny a pair, as the caches are, and have only just begun to, or
// whether the last Placement has only just vanished.
func (w *World) Unsettled(s *State, pair types.NamespacedName) bool {
	seen := s.seen[pair]
	switch {
	case !s.deniesByPlacement(pair):
		return false
	case s.narrows(pair.Namespace):
		return seen.stirred == s.ticks && s.ticks > 0
	default:
		return seen.narrowed == s.ticks && w.Tick > kube.AbsenceCounts
	}
}

// deniesByPlacement reports whether only Placements deny a pair, as the caches are.
func (s *State) deniesByPlacement(pair types.NamespacedName) bool {
	shown := s.inCaches()
	return shown.inventoried(pair.Name) != no && shown.bound(pair) == yes && shown.placed(pair) == no
}

// send applies a write of a profile to the hub, with its preconditions. isLost says that the
// manager does not learn the result.
func (w *World) send(s *State, pair types.NamespacedName, isLost bool) error {
	op := s.pending[pair]
	pending := map[types.NamespacedName]write{}
	for key, value := range s.pending {
		if key != pair {
			pending[key] = value
		}
	}
	s.pending = pending
	now := Get[*inventoryv1alpha1.ClusterProfile](s, Profiles, pair)
	var written *inventoryv1alpha1.ClusterProfile
	switch {
	case op.verb == create && now == nil:
		s.Create(Profiles, newProfile(pair))
		written = Get[*inventoryv1alpha1.ClusterProfile](s, Profiles, pair)
	case op.verb == adopt && now != nil && !IsOurs(now):
		return Violated(ProfileForeign, "%s is to be adopted", pair)
	case op.verb == adopt && now != nil && now.UID == op.uid && now.ResourceVersion == op.version:
		Edit(s, Profiles, pair, func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = newProfile(pair).Labels })
		written = Get[*inventoryv1alpha1.ClusterProfile](s, Profiles, pair)
	case op.verb == remove && now != nil && now.UID == op.uid && now.ResourceVersion == op.version:
		if w.Part != nil {
			if err := w.checkReferences(s, pair); err != nil {
				return err
			}
		}
		s.Delete(Profiles, pair)
		if !isLost {
			w.expectations(s).Deleted(now, s.Time())
		}
	}
	if written != nil && !isLost {
		w.expectations(s).Wrote(written, s.Time())
	}
	if isLost {
		written = nil
	}
	if existed := op.verb == create && now != nil; !existed {
		w.allow(pair, selection.Observation{Profile: written}, selection.Yes, op.verb == remove)
	}
	w.noteDelivery(s)
	return nil
}

// ReferenceOutlives is the invariant about the order of a profile and its references.
const ReferenceOutlives = "a profile deleted while something refers to it"

func (w *World) checkReferences(s *State, pair types.NamespacedName) error {
	for _, obj := range s.hub[References] {
		slice := obj.Object.(*inventoryv1alpha1.PlacementDecision)
		for _, d := range slice.Decisions {
			if slice.Namespace == pair.Namespace && d.ClusterProfileRef.Name == pair.Name {
				return Violated(ReferenceOutlives, "%s in %s", pair, slice.Name)
			}
		}
	}
	return nil
}
