package faults

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// reference is what a story does without a fault.
type reference struct {
	// before and after are the hub's states.
	before, after map[string]string
	// writes and events are those that every run has.
	writes, events []proxy.Key
	// ofComponents are the writes of each of Open Cluster Management's components that every run
	// has, by its prefix.
	ofComponents map[string][]proxy.Key
	// masked are those that differ between runs without faults.
	masked []proxy.Key
	// sent is the largest number of writes in one run.
	sent int
	// counts are how often each object was created and deleted, as "created <object>".
	counts map[string]int
}

// result is what was seen of one run.
type result struct {
	before, after map[string]string
	record        proxy.Record
	// sent are the effective writes of each component, by its prefix.
	sent map[string][]proxy.Key
	// setup are the changes before the faults, changes those after.
	setup, changes []change
	// began is when the story's act did.
	began time.Time
	// ordered is true if versions order all changes: not if the hub was away.
	ordered bool
	// unanswered is how many writes did not reach the hub because it was away.
	unanswered int
	// late are writes after the state was reached.
	late []proxy.Write
	// converged is false if the state was not reached in time.
	converged bool
	// tokens are names of tokens by value; wrote is what was written, by cluster and account.
	tokens map[string]string
	wrote  map[string][]string
	// log is the managers' as a whole, and logs are the ends of all programs' logs, for a reader.
	log, logs string
	// bodies are what the managers sent, but for Secrets.
	bodies []proxy.Body
	// causes are the earliest times at which something may have happened because of which a manager takes
	// something away.
	causes []time.Time
	// waited is true if the story waited for something before it went on.
	waited bool
	// fault is what happened.
	fault proxy.Fault
	// exits says how a manager ended by itself, each time, but for a leader that lost its Lease.
	exits []string
	// lagged is true if the manager started with an API server that lagged.
	lagged bool
	// versions is how many managers of different versions led, one after the other; 0 if all were alike.
	versions int
	// slow is the namespace of which all writes were slow, if there is one.
	slow string
	// api is the CRD of the kind that the fault was about, if there is one.
	api string
	// lost are the objects that went with their CRD, as in a state.
	lost []string
	// problems are effects that did not come while the story went on.
	problems []string
	// races and outdated are those of the story.
	races, outdated []string
	// took is how long it was from the act to the state after, and peak the most memory that the
	// manager had since it started, in MiB.
	took time.Duration
	peak int
}

// counts returns how often each object was created and deleted, but for what went with its CRD
// and came again.
func counts(changes []change) map[string]int {
	counted := map[string]int{}
	for _, c := range changes {
		if c.what != changed && !c.replaced {
			counted[c.String()]++
		}
	}
	return counted
}

// counts returns how often each object was created and deleted, without what may or may not happen.
func (r result) counts() map[string]int {
	counted := counts(r.changes)
	settle(r.races, counted)
	return counted
}

// merge makes a reference of two runs without a fault, which must agree.
func merge(a, b result) (reference, []string) {
	var differences []string
	note := func(what, diff string) {
		if diff != "" {
			differences = append(differences, what+" differs between two runs without a fault (-first +second):\n"+diff)
		}
	}
	note("the state before", cmp.Diff(a.before, b.before))
	note("the state after", cmp.Diff(a.after, b.after))
	note("what is created and deleted", cmp.Diff(a.counts(), b.counts()))
	ref := reference{
		before: a.before, after: a.after, counts: a.counts(),
		sent: max(len(a.record.Writes), len(b.record.Writes)),
	}
	keep := func(of, other []proxy.Key) (kept []proxy.Key) {
		others := sets.New(other...)
		for _, key := range of {
			if others.Has(key) {
				kept = append(kept, key)
			} else {
				ref.masked = append(ref.masked, key)
			}
		}
		return kept
	}
	ref.writes = keep(effective(a.record.Writes), effective(b.record.Writes))
	keep(effective(b.record.Writes), effective(a.record.Writes))
	ref.events = keep(a.record.Events, b.record.Events)
	keep(b.record.Events, a.record.Events)
	ref.ofComponents = map[string][]proxy.Key{}
	for prefix := range a.sent {
		ref.ofComponents[prefix] = keep(a.sent[prefix], b.sent[prefix])
		keep(b.sent[prefix], a.sent[prefix])
	}
	return ref, differences
}

// effective returns the writes that the API server carried out.
func effective(writes []proxy.Write) []proxy.Key {
	var keys []proxy.Key
	for _, write := range writes {
		if write.Code >= 200 && write.Code < 300 {
			keys = append(keys, write.Key)
		}
	}
	return keys
}

// Kinds of violations: each finding begins with its own.
const (
	ofEffect  = "effect"
	ofState   = "end state"
	ofCounts  = "created and deleted"
	ofNumber  = "number of writes"
	ofQuiet   = "quiet"
	ofProfile = "profiles"
	ofClaim   = "claims"
	ofToken   = "tokens"
	ofForeign = "others' objects"
	ofExit    = "exit"
	ofHistory = "history"
	ofOrder   = "order"
	ofAgents  = "agents"
)

// violationKinds are all of them.
var violationKinds = []string{
	ofEffect, ofState, ofCounts, ofNumber, ofQuiet, ofProfile, ofClaim, ofToken, ofForeign, ofExit, ofHistory, ofOrder,
	ofAgents,
}

// prefixed puts the kind in front of findings.
func prefixed(kind string, findings ...string) []string {
	all := make([]string, 0, len(findings))
	for _, text := range findings {
		all = append(all, kind+": "+text)
	}
	return all
}

// check returns what is wrong with a run of a story: nothing if all oracles are content.
func check(s story, ref reference, got result) []string {
	findings := prefixed(ofEffect, got.problems...)
	if !got.converged {
		findings = append(findings, ofState+": the state is not that of a run without a fault (-want +got):\n"+
			cmp.Diff(ref.after, got.after))
	}
	counted := got.counts()
	if got.lagged || got.api == accounts {
		keepRights(ref.counts, counted)
	}
	findings = append(findings, prefixed(ofCounts, checkCounts(ref.counts, counted)...)...)
	refused, often := attempts(got)
	allowed := 2*ref.sent + repairs(s, got.changes)
	if got.versions > 0 {
		allowed += (got.versions - 1) * rewrites(got.before, got.after)
	}
	if got.slow != "" || got.api != "" {
		allowed += reports(got)
	}
	if sent := len(got.record.Writes) - refused - got.unanswered - conflicts(got); sent > allowed {
		finding := fmt.Sprintf("%d writes, %d without a fault: %s", sent, ref.sent, listed(got.record.Writes))
		findings = append(findings, prefixed(ofNumber, finding)...)
	}
	findings = append(findings, prefixed(ofNumber, often...)...)
	if problem := checkSlow(got.slow, got.record.Writes, got.waited); got.slow != "" && problem != "" {
		findings = append(findings, ofOrder+": "+problem)
	}
	if len(got.late) > 0 {
		findings = append(findings, ofQuiet+": writes although nothing was left to do: "+listed(got.late))
	}
	return append(findings, invariants(s, got)...)
}

// mostAttempts is how often an object may be written in vain while its kind is not served: the
// pauses in between begin with milliseconds and double.
const mostAttempts = 12

// attempts returns how many writes were refused because their kind was not served, and which
// objects were tried too often.
func attempts(got result) (refused int, often []string) {
	tries := map[string]int{}
	for _, write := range got.record.Writes {
		kind, _, _ := strings.Cut(write.Key.Resource, "/")
		if kind != got.api || (write.Code != http.StatusNotFound && write.Code != http.StatusMethodNotAllowed) {
			continue
		}
		refused++
		what := write.Key.Verb + " " + write.Key.Resource + " " + write.Key.Object
		if tries[what] == mostAttempts {
			often = append(often, what+": more than a dozen times while the kind was not served")
		}
		tries[what]++
	}
	return refused, often
}

// conflicts are how many writes of profiles were refused because another client wrote at the same time: at most one
// for each time that it did.
func conflicts(got result) int {
	theirWrites, refused := 0, 0
	for of, values := range got.wrote {
		if strings.HasSuffix(of, " "+theirs) {
			theirWrites += len(values)
		}
	}
	for _, write := range got.record.Writes {
		if kind, _, _ := strings.Cut(write.Key.Resource, "/"); kind == profiles && write.Code == http.StatusConflict {
			refused++
		}
	}
	return min(theirWrites, refused)
}

// repairs are how many writes bring back what went with the CRD of profiles: a profile takes one
// and its status another one, and so does the owner of a copy.
func repairs(s story, changes []change) int {
	writes := 0
	for _, c := range changes {
		if c.replaced && c.what == created && !isForeign(c.key) {
			writes += 2 + len(s.copies([]string{c.key}))
		}
	}
	return writes
}

// heldBack is for how long a cluster's condition does not say that an API is missing or a copy late.
const heldBack = 5 * time.Second

// reports are how many writes of addons' status are due to an API that is not served or copies that are
// late: for each addon, a problem that begins and ends.
func reports(got result) int {
	const each = 2
	reported := map[string]int{}
	for _, write := range got.record.Writes {
		isLate := write.At.Sub(got.began) >= heldBack || got.api == properties // of these the agent says so at once
		if write.Key.Resource == addonStatus && isLate && reported[write.Key.Object] < each {
			reported[write.Key.Object]++
		}
	}
	total := 0
	for _, n := range reported {
		total += n
	}
	return total
}

func listed(writes []proxy.Write) string {
	var all []string
	for _, write := range writes {
		all = append(all, fmt.Sprintf("%s: %d", write.Key, write.Code))
	}
	return strings.Join(all, ", ")
}

// keepRights counts rights that stayed as deleted and created again, if the reference has that: a
// manager that did not see for how long they were not needed, or to which accounts may still be restored
// that need them, need not do it.
func keepRights(want, got map[string]int) {
	for what, n := range want {
		id, isDeleted := strings.CutPrefix(what, deleted+" "+rightsResource)
		again := created + " " + rightsResource + id
		if less := n - got[what]; isDeleted && less > 0 && want[again]-got[again] == less {
			got[what] += less
			got[again] += less
		}
	}
}

// checkCounts compares how often each object was created and deleted.
func checkCounts(want, got map[string]int) []string {
	all := map[string]bool{}
	for what := range want {
		all[what] = true
	}
	for what := range got {
		all[what] = true
	}
	var findings []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		if want[what] != got[what] {
			findings = append(findings, fmt.Sprintf("%s: %d times, %d without a fault", what, got[what], want[what]))
		}
	}
	return findings
}

const (
	profiles = "clusterprofiles.multicluster.x-k8s.io"
	secrets  = "secrets"

	// On a spoke.
	claimsOfSpoke = "clusterclaims.cluster.open-cluster-management.io"
	properties    = "clusterproperties.about.k8s.io"

	addonStatus    = "managedclusteraddons.addon.open-cluster-management.io/status"
	rightsResource = "rolebindings.rbac.authorization.k8s.io"
)

// published are the kinds that consumers see, on a hub and on a spoke, and the kind of violation that is
// about each. In a story, a claim is a pair without a namespace: "/" and its name.
var published = map[string]string{profiles: ofProfile, claimsOfSpoke: ofClaim}

// one is one of what violations of a kind are about.
func one(kind string) string { return "a " + strings.TrimSuffix(kind, "s") }

// pairOf is the pair that a write to an object of one of these kinds is about.
func pairOf(object string) string {
	if strings.Contains(object, "/") {
		return object
	}
	return "/" + object
}

// invariants checks what must hold at every moment.
func invariants(s story, got result) []string {
	var findings []string
	add := func(kind, format string, values ...any) {
		if text := kind + ": " + fmt.Sprintf(format, values...); !slices.Contains(findings, text) {
			findings = append(findings, text)
		}
	}
	for _, c := range slices.Concat(got.setup, got.changes) {
		kind := published[c.resource]
		if kind != "" && c.what != deleted && !isForeign(c.key) && !slices.Contains(s.may(), c.key) {
			add(kind, "%s that must never be there: %s", one(kind), c)
		}
		for token, name := range got.tokens {
			source, _, _ := strings.Cut(name, "/")
			if c.what == deleted || !holds(c.content, token) {
				continue
			}
			allowed := append([]string{source}, s.targets[source]...)
			if c.resource != secrets || !slices.Contains(allowed, namespaceOf(c.key)) {
				add(ofToken, "token %s is where it must never be: %s", name, c)
			}
		}
	}
	for _, body := range got.bodies {
		for token, name := range got.tokens {
			if holds(string(body.Content), token) {
				add(ofToken, "token %s was sent where it must never be: %s", name, body.What)
			}
		}
	}
	for _, c := range got.setup {
		if isForeign(c.key) && c.what != created {
			add(ofForeign, "somebody else's object was touched before the fault: %s", c)
		}
		if kind := published[c.resource]; got.fault.Kind == restored && kind != "" && c.what == deleted && s.keeps(c.key) {
			add(kind, "%s went when the hub was restored, although it is published all along: %s", one(kind), c)
		}
	}
	for _, write := range effective(got.record.Writes) {
		kind, pair := published[write.Resource], pairOf(write.Object)
		if write.Verb == "delete" && kind != "" && slices.Contains(got.lost, write.Resource+" "+pair) && s.keeps(pair) {
			add(kind, "the manager deleted %s that is published all along: %s", one(kind), pair)
		}
	}
	for _, c := range got.changes {
		if c.lost || c.replaced {
			continue // by the administrator
		}
		if isForeign(c.key) {
			add(ofForeign, "somebody else's object was touched: %s", c)
		}
		if kind := published[c.resource]; kind != "" && c.what == deleted && s.keeps(c.key) {
			add(kind, "%s went that is published all along: %s", one(kind), c)
		}
		if c.resource == works && c.what == deleted && strings.HasSuffix(c.key, "/"+deployWork) &&
			s.has(namespaceOf(c.key)) {
			add(ofAgents, "the agent of a cluster went that is selected all along: %s", c)
		}
	}
	findings = append(findings, prefixed(ofNumber, checkEach(s, got.record.Writes)...)...)
	findings = append(findings, prefixed(ofState, checkOutdated(s, got)...)...)
	for _, how := range got.exits {
		add(ofExit, "the manager ended by itself: %s", how)
	}
	for token, name := range got.tokens {
		if strings.Contains(got.log, token) {
			add(ofToken, "token %s is in the manager's log", name)
		}
	}
	findings = append(findings, prefixed(ofHistory, histories(got)...)...)
	if got.ordered {
		findings = append(findings, prefixed(ofOrder, checkOrder(s, got)...)...)
	}
	return findings
}

// holds reports whether a token is in an object, as it is or encoded.
func holds(content, token string) bool {
	return strings.Contains(content, token) ||
		strings.Contains(content, base64.StdEncoding.EncodeToString([]byte(token)))
}

// histories checks that what consumers saw of a property, ours or another client's, of a claim and of
// a copied token, and the AgentRevisions that a cluster's ManifestWork deployed, are what was written,
// in that order, and end with the last; and that no property goes while its profile stays, unless the
// story takes it away. Of other versions, each may have properties of its own.
func histories(got result) []string {
	type object struct {
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
		Spec   struct{ Value string }
		Status struct {
			Properties []struct{ Name, Value string }
		}
		Data map[string][]byte
	}
	saw, source, exists := map[string][]string{}, map[string]string{}, map[string]bool{}
	has, findings := map[string][]string{}, []string(nil)
	for _, c := range slices.Concat(got.setup, got.changes) {
		exists[c.key], exists[ofTheirs(c.key)] = c.what != deleted, c.what != deleted
		if c.what == deleted {
			delete(has, c.key)
		}
		var o object
		if c.content == "" || json.Unmarshal([]byte(c.content), &o) != nil {
			continue
		}
		switch c.resource {
		case profiles:
			if c.what == deleted {
				continue
			}
			var names []string
			for _, property := range o.Status.Properties {
				key, of := c.key, o.Metadata.Name
				if got.versions == 0 || property.Name == edited || property.Name == theirs {
					names = append(names, property.Name)
				}
				switch property.Name {
				case edited:
				case theirs:
					key, of = ofTheirs(key), ofTheirs(of)
				default:
					continue
				}
				source[key] = of
				saw[key] = append(saw[key], property.Value)
			}
			for _, name := range has[c.key] {
				mayGo := slices.Contains(got.outdated, name) && slices.Contains(got.races, o.Metadata.Name)
				if !slices.Contains(names, name) && !mayGo {
					findings = append(findings, fmt.Sprintf("%s: the profile lost the property %s", c.key, name))
				}
			}
			has[c.key] = names
		case claimsOfSpoke:
			if c.what != deleted && !isForeign(c.key) {
				source[c.key] = o.Metadata.Name
				saw[c.key] = append(saw[c.key], o.Spec.Value)
			}
		case secrets:
			of, number, known := strings.Cut(got.tokens[string(o.Data["token"])], "#")
			switch {
			case known && namespaceOf(of) != namespaceOf(c.key):
				source[c.key] = of
				saw[c.key] = append(saw[c.key], number)
			case !known && c.what != deleted && slices.Contains(consumers, namespaceOf(c.key)) && !isForeign(c.key):
				findings = append(findings, c.key+": the copy holds what is no token of its account")
			}
		case works:
			of := agentOf(namespaceOf(c.key))
			if o.Metadata.Name == deployWork && got.wrote[of] != nil {
				source[c.key] = of
				saw[c.key] = append(saw[c.key], revisionIn(o.Metadata.Annotations))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(saw)) {
		wrote, seen := got.wrote[source[key]], slices.Compact(slices.Clone(saw[key]))
		if problem := checkHistory(wrote, seen, exists[key] && got.converged); problem != "" {
			findings = append(findings, fmt.Sprintf("%s: consumers saw %q, %q was written: %s", key, seen, wrote, problem))
		}
	}
	return findings
}

// checkHistory returns what is wrong with the values that were seen, or "". Values do not
// repeat.
func checkHistory(wrote, seen []string, lasts bool) string {
	at := 0
	for _, value := range seen {
		for at < len(wrote) && wrote[at] != value {
			at++
		}
		if at == len(wrote) {
			return fmt.Sprintf("%q came too late or was never written", value)
		}
	}
	if lasts && len(seen) > 0 && len(wrote) > 0 && seen[len(seen)-1] != wrote[len(wrote)-1] {
		return "the last one is missing"
	}
	return ""
}
