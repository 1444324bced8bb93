package faults

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// profileOf is the content of a profile with a value of the edited property.
func profileOf(cluster, size string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"properties":[{"name":%q,"value":%q}]}}`, cluster, edited, size)
}

// sharedProfileOf is that of a profile to which another client writes.
func sharedProfileOf(cluster, size, seen string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"properties":[{"name":%q,"value":%q},{"name":%q,"value":%q}]}}`,
		cluster, edited, size, theirs, seen)
}

// copyOf is the content of a Secret with a token.
func copyOf(token string) string {
	return fmt.Sprintf(`{"data":{"token":%q}}`, base64.StdEncoding.EncodeToString([]byte(token)))
}

// good is a run of a story without anything wrong: the profile team-a/c1 is changed once, and
// a token of c1 copied there.
func good() (story, reference, result) {
	s := story{
		name: "edit", before: []string{"team-a/c1"}, after: []string{"team-a/c1"}, meanwhile: []string{"team-a/c2"},
		targets: map[string][]string{"c1": {"team-a"}},
	}
	state := map[string]string{profiles + " team-a/c1": "right"}
	write := proxy.Write{Key: proxy.Key{Verb: "patch", Resource: profiles + "/status", Object: "team-a/c1", N: 1}, Code: 200}
	got := result{
		before: state, after: state, converged: true,
		record: proxy.Record{Writes: []proxy.Write{write}, Fired: time.Now()},
		setup:  []change{{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "1")}},
		changes: []change{
			{what: changed, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")},
			{what: created, resource: secrets, key: "team-a/c1-reader", content: copyOf("t-1")},
		},
		tokens: map[string]string{"t-1": "c1/reader#1"},
		wrote:  map[string][]string{"c1": {"1", "2"}, "c1/reader": {"1"}},
	}
	ref, _ := merge(got, got)
	return s, ref, got
}

func TestEveryFindingHasAKind(t *testing.T) {
	s, ref, got := good()
	got.converged, got.problems, got.exits, got.log = false, []string{"it did not come"}, []string{"status 1"}, "t-1"
	got.late = got.record.Writes
	got.record.Writes = append(got.record.Writes, got.late[0], got.late[0])
	got.changes = append(got.changes, change{what: deleted, resource: profiles, key: "team-a/c1"},
		change{what: created, resource: secrets, key: "stranger/c1-reader", content: copyOf("t-1")},
		change{what: changed, resource: secrets, key: "team-a/" + foreign},
		change{what: created, resource: claimsOfSpoke, key: "/" + kept},
		change{what: changed, resource: profiles, key: "team-a/c1", content: profileOf("c1", "0")},
		change{what: deleted, resource: works, key: "c1/" + deployWork})
	got.ordered = true
	findings := check(s, ref, got)
	for _, text := range findings {
		if len(violations(outcome{Verdict: finding, Findings: []string{text}})) != 1 {
			t.Errorf("%q has no kind", text)
		}
	}
	want := violationKinds
	if kinds := violations(outcome{Verdict: finding, Findings: findings}); len(kinds) != len(want) {
		t.Errorf("kinds %q, want all of %q", kinds, want)
	}
}

func TestOracles(t *testing.T) {
	add := func(changes ...change) func(*result) {
		return func(r *result) { r.changes = slices.Concat(r.changes, changes) }
	}
	// writes is another client's first and last value, and the profile's versions after good's.
	writes := func(first, last string, versions ...change) func(*result) {
		for i := range versions {
			versions[i].what, versions[i].resource, versions[i].key = changed, profiles, "team-a/c1"
		}
		return func(r *result) {
			r.wrote[ofTheirs("c1")] = slices.Compact([]string{first, last})
			add(versions...)(r)
		}
	}
	refuse := func(r *result, times int) {
		for i := range times {
			key := proxy.Key{Verb: "create", Resource: profiles, Object: "team-a/c3", N: i + 1}
			r.record.Writes = append(r.record.Writes, proxy.Write{Key: key, Code: 404})
		}
	}
	loses := func(lost string, changes ...change) func(*result) {
		return func(r *result) {
			add(changes...)(r)
			r.lost = []string{profiles + " " + lost}
			markLost(r.changes, r.lost)
		}
	}
	// brings is that a profile comes again by some writes, besides twice those of a run without a fault.
	brings := func(writes int) func(*result) {
		return func(r *result) {
			loses("team-a/c1", change{what: deleted, resource: profiles, key: "team-a/c1"},
				change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")})(r)
			for range 1 + writes {
				r.record.Writes = append(r.record.Writes, r.record.Writes[0])
			}
		}
	}
	tests := map[string]struct {
		wrong func(*result)
		want  []string // parts of the findings
	}{
		"nothing is wrong": {wrong: func(*result) {}},
		"the state is another": {
			wrong: func(r *result) {
				r.converged, r.after = false, map[string]string{profiles + " team-a/c1": "wrong"}
			},
			want: []string{"the state is not that"},
		},
		"a copy holds what is no token": {
			wrong: add(change{what: changed, resource: secrets, key: "team-a/c1-reader", content: copyOf("")},
				change{what: changed, resource: secrets, key: "team-a/c1-reader", content: copyOf("t-1")}),
			want: []string{"history: team-a/c1-reader: the copy holds what is no token of its account"},
		},
		"a token is sent in an event": {
			wrong: func(r *result) { r.bodies = []proxy.Body{{What: "POST /events", Content: []byte("so t-1 is refused")}} },
			want:  []string{"tokens: token c1/reader#1 was sent where it must never be: POST /events"},
		},
		"another client's object is touched before the fault": {
			wrong: func(r *result) {
				r.setup = append(r.setup, change{what: changed, resource: secrets, key: "team-a/" + foreign})
			},
			want: []string{"others' objects: somebody else's object was touched before the fault"},
		},
		"a profile goes and comes when the hub is restored": {
			wrong: func(r *result) {
				r.fault.Kind = restored
				r.setup = append(r.setup, change{what: deleted, resource: profiles, key: "team-a/c1"},
					change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "1")})
			},
			want: []string{"profiles: a profile went when the hub was restored"},
		},
		"a copy holds a token that the restored hub does not have": {
			wrong: func(r *result) {
				r.tokens["t-2"] = "c1/reader#2" + lostMark
				add(change{what: changed, resource: secrets, key: "team-a/c1-reader", content: copyOf("t-2")})(r)
			},
			want: []string{`history: team-a/c1-reader: consumers saw ["1" "2, lost"], ["1"] was written`},
		},
		"a profile is deleted and created again": {
			wrong: add(change{what: deleted, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")},
				change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")}),
			want: []string{"created clusterprofiles.multicluster.x-k8s.io team-a/c1: 1 times, 0",
				"deleted clusterprofiles.multicluster.x-k8s.io team-a/c1: 1 times, 0", "a profile went"},
		},
		"another client writes three times at the same time": {wrong: func(r *result) {
			writes("1", "1")(r)
			r.wrote[ofTheirs("c1")] = []string{"1", "2", "3"}
			for range 3 {
				conflict := r.record.Writes[0]
				conflict.Code = 409
				r.record.Writes = append(r.record.Writes, conflict)
			}
		}},
		"another client writes once, and two conflicts follow": {
			wrong: func(r *result) {
				writes("1", "1")(r)
				for range 3 {
					conflict := r.record.Writes[0]
					conflict.Code = 409
					r.record.Writes = append(r.record.Writes, conflict)
				}
			},
			want: []string{"number of writes: 3 writes, 1 without a fault"},
		},
		"a kind is not served": {wrong: func(r *result) { r.api = profiles; refuse(r, mostAttempts) }},
		"a kind is not served, and an object is tried all the time": {
			wrong: func(r *result) { r.api = profiles; refuse(r, mostAttempts+5) },
			want:  []string{"number of writes: create clusterprofiles.multicluster.x-k8s.io team-a/c3: more than a dozen times"},
		},
		"another kind is not served": {
			wrong: func(r *result) { r.api = references; refuse(r, mostAttempts) }, want: []string{"13 writes, 1 without"},
		},
		"a profile goes with its kind and comes again": {wrong: loses("team-a/c1",
			change{what: deleted, resource: profiles, key: "team-a/c1"},
			change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")},
		)},
		"a profile goes with its kind and comes again with its copy": {wrong: brings(3)},
		"a profile goes with its kind and takes too many writes to come again": {
			wrong: brings(4), want: []string{"number of writes: 6 writes, 1 without a fault"},
		},
		"a profile goes with its kind and comes twice": {
			wrong: loses("team-a/c1",
				change{what: deleted, resource: profiles, key: "team-a/c1"},
				change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")},
				change{what: deleted, resource: profiles, key: "team-a/c1"},
				change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")}),
			want: []string{"created clusterprofiles.multicluster.x-k8s.io team-a/c1: 1 times, 0",
				"deleted clusterprofiles.multicluster.x-k8s.io team-a/c1: 1 times, 0", "a profile went"},
		},
		"a profile goes with its kind and does not come again": {
			wrong: loses("team-a/c1", change{what: deleted, resource: profiles, key: "team-a/c1"}),
			want:  []string{"deleted clusterprofiles.multicluster.x-k8s.io team-a/c1: 1 times, 0"},
		},
		"the manager deletes a profile just before its kind goes": {
			wrong: func(r *result) {
				loses("team-a/c1", change{what: deleted, resource: profiles, key: "team-a/c1"},
					change{what: created, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")})(r)
				r.record.Writes = append(r.record.Writes, proxy.Write{
					Key: proxy.Key{Verb: "delete", Resource: profiles, Object: "team-a/c1", N: 1}, Code: 200,
				})
			},
			want: []string{"the manager deleted a profile that is published all along: team-a/c1"},
		},
		"somebody else's profile goes with its kind and is restored": {wrong: loses("team-a/"+foreign,
			change{what: deleted, resource: profiles, key: "team-a/" + foreign},
			change{what: created, resource: profiles, key: "team-a/" + foreign},
		)},
		"nothing is created that should be": {
			wrong: func(r *result) { r.changes = r.changes[:1] }, want: []string{"created secrets team-a/c1-reader: 0 times, 1"},
		},
		"too many writes": {
			wrong: func(r *result) { r.record.Writes = slices.Repeat(r.record.Writes, 3) }, want: []string{"3 writes, 1"},
		},
		"twice as many are allowed": {wrong: func(r *result) { r.record.Writes = slices.Repeat(r.record.Writes, 2) }},
		"it writes when all is done": {
			wrong: func(r *result) { r.late = r.record.Writes }, want: []string{"nothing was left to do"},
		},
		"a profile where nothing is selected": {
			wrong: add(change{what: changed, resource: profiles, key: "stranger/c1"}),
			want:  []string{"a profile that must never be there"},
		},
		"a token in another namespace": {
			wrong: add(change{what: changed, resource: secrets, key: "stranger/c1-reader", content: copyOf("t-1")}),
			want:  []string{"token c1/reader#1 is where it must never be"},
		},
		"a token in a profile": {
			wrong: add(change{
				what: changed, resource: profiles, key: "team-a/c1",
				content: strings.Replace(profileOf("c1", "2"), "{", `{"x":"t-1",`, 1),
			}),
			want: []string{"token c1/reader#1 is where it must never be"},
		},
		"a token in the log": {
			wrong: func(r *result) { r.log = "I t-1" }, want: []string{"in the manager's log"},
		},
		"others' objects": {
			wrong: add(change{what: changed, resource: secrets, key: "team-a/foreign"}), want: []string{"somebody else's object"},
		},
		"the manager ended": {wrong: func(r *result) { r.exits = []string{"exit status 1"} }, want: []string{"ended by itself: exit status 1"}},
		"a consumer sees an old value again": {
			wrong: add(change{what: changed, resource: profiles, key: "team-a/c1", content: profileOf("c1", "1")},
				change{what: changed, resource: profiles, key: "team-a/c1", content: profileOf("c1", "2")}),
			want: []string{`"1" came too late`},
		},
		"a consumer sees a value that nobody wrote": {
			wrong: add(change{what: changed, resource: profiles, key: "team-a/c1", content: profileOf("c1", "9")}),
			want:  []string{`"9" came too late or was never written`},
		},
		"a consumer misses a value in between": {
			wrong: func(r *result) { r.wrote["c1"] = []string{"1", "1.5", "2"} },
		},
		"a consumer misses the last value": {
			wrong: func(r *result) { r.wrote["c1"] = []string{"1", "2", "3"} }, want: []string{"the last one is missing"},
		},
		"another client's property is as it wrote it": {
			wrong: writes("1", "2", change{content: sharedProfileOf("c1", "2", "1")}, change{content: sharedProfileOf("c1", "2", "2")}),
		},
		"another client's property goes and comes again": {
			wrong: writes("1", "2", change{content: sharedProfileOf("c1", "2", "1")}, change{content: profileOf("c1", "2")},
				change{content: sharedProfileOf("c1", "2", "2")}),
			want: []string{"the profile lost the property last-seen.example.com"},
		},
		"another client's property goes": {
			wrong: writes("1", "1", change{content: sharedProfileOf("c1", "2", "1")}, change{content: profileOf("c1", "2")}),
			want:  []string{"the profile lost the property last-seen.example.com"},
		},
		"a property goes that only an earlier registration of the cluster had": {
			wrong: func(r *result) {
				writes("1", "1", change{content: sharedProfileOf("c1", "2", "1")}, change{content: profileOf("c1", "2")})(r)
				r.outdated, r.races = []string{theirs}, []string{"c1"}
			},
		},
		"such a property goes of a cluster whose profile goes first": {
			wrong: func(r *result) {
				writes("1", "1", change{content: sharedProfileOf("c1", "2", "1")}, change{content: profileOf("c1", "2")})(r)
				r.outdated, r.races = []string{theirs}, []string{"c2"}
			},
			want: []string{"the profile lost the property last-seen.example.com"},
		},
		"another client's update is lost": {
			wrong: writes("1", "2", change{content: sharedProfileOf("c1", "2", "1")}, change{content: sharedProfileOf("c1", "2", "2")},
				change{content: sharedProfileOf("c1", "2", "1")}),
			want: []string{`"1" came too late`},
		},
		"another client's last update is lost": {
			wrong: writes("1", "2", change{content: sharedProfileOf("c1", "2", "1")}), want: []string{"the last one is missing"},
		},
		"the agent of a cluster goes that is selected all along": {
			wrong: add(change{what: deleted, resource: works, key: "c1/" + deployWork}),
			want:  []string{"deleted manifestworks.work.open-cluster-management.io c1/" + deployWork + ": 1 times, 0", "the agent of a cluster went"},
		},
		"other ManifestWorks may go": {
			wrong: add(change{what: deleted, resource: works, key: "c1/" + cleanupWork}, change{what: deleted, resource: works, key: "c2/" + deployWork}),
			want: []string{
				"deleted manifestworks.work.open-cluster-management.io c1/" + cleanupWork + ": 1 times, 0",
				"deleted manifestworks.work.open-cluster-management.io c2/" + deployWork + ": 1 times, 0",
			},
		},
		"a cluster gets another agent and the first one again": {wrong: deploys([]string{"a", "b", "a"}, "a", "b", "a")},
		"a cluster never gets the other agent":                 {wrong: deploys([]string{"a", "b", "a"}, "a")},
		"a cluster gets an agent whose turn has not come": {
			wrong: deploys([]string{"a"}, "a", "b", "a"), want: []string{`"b" came too late or was never written`},
		},
		"a cluster keeps the other agent": {
			wrong: deploys([]string{"a", "b", "a"}, "a", "b"), want: []string{"the last one is missing"},
		},
		"a copy keeps an old token": {
			wrong: func(r *result) { r.wrote["c1/reader"] = []string{"1", "2"} }, want: []string{"the last one is missing"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, ref, got := good()
			test.wrong(&got)
			compare(t, check(s, ref, got), test.want)
		})
	}
}

// deploys makes a cluster's ManifestWork deploy agents of some AgentRevisions, one after the other.
func deploys(wrote []string, revisions ...string) func(*result) {
	return func(r *result) {
		r.wrote[agentOf("c1")] = wrote
		for _, revision := range revisions {
			content, err := json.Marshal(agentWork(revision))
			if err != nil {
				panic(err) // impossible for a work
			}
			r.changes = append(r.changes, change{
				what: changed, resource: works, key: "c1/" + deployWork, content: string(content),
			})
		}
	}
}

func TestRightsMayStayWhenTheManagerLagged(t *testing.T) {
	right := func(what string) string { return what + " " + rightsResource + " team-a/r" }
	tests := map[string]struct{ want, got, after map[string]int }{
		"they stayed": {
			want: map[string]int{right(deleted): 1, right(created): 1}, got: map[string]int{},
			after: map[string]int{right(deleted): 1, right(created): 1},
		},
		"they went": {
			want: map[string]int{right(deleted): 1, right(created): 1}, got: map[string]int{right(deleted): 1},
			after: map[string]int{right(deleted): 1},
		},
		"they should have gone": {want: map[string]int{right(deleted): 1}, got: map[string]int{}, after: map[string]int{}},
		"they went too often": {
			want: map[string]int{right(deleted): 1, right(created): 1}, got: map[string]int{right(deleted): 2, right(created): 2},
			after: map[string]int{right(deleted): 2, right(created): 2},
		},
		"others must not stay": {
			want: map[string]int{"deleted secrets n/x": 1, "created secrets n/x": 1}, got: map[string]int{},
			after: map[string]int{},
		},
	}
	for name, test := range tests {
		keepRights(test.want, test.got)
		if diff := cmp.Diff(test.after, test.got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestRightsMayStayWhileAccountsAreRestored compares runs in which a right stays with a reference in which
// it goes and comes again.
func TestRightsMayStayWhileAccountsAreRestored(t *testing.T) {
	s, _, with := good()
	right := change{what: deleted, resource: rightsResource, key: "team-a/r"}
	again := right
	again.what = created
	with.changes = append(with.changes, right, again)
	ref, _ := merge(with, with)
	for api, want := range map[string]int{accounts: 0, profiles: 2, "": 2} {
		_, _, stayed := good()
		stayed.api = api
		if findings := check(s, ref, stayed); len(findings) != want {
			t.Errorf("while %q is recreated: %q, want %d", api, findings, want)
		}
	}
}

func TestReferencesKeepWhatTwoRunsShare(t *testing.T) {
	_, _, one := good()
	_, _, other := good()
	same := one.record.Writes[0]
	extra := same
	extra.Key.N = 2
	failed := same
	failed.Key.N, failed.Code = 3, 409
	other.record.Writes = []proxy.Write{same, extra, failed}
	ref, differences := merge(one, other)
	if len(differences) > 0 {
		t.Error(differences)
	}
	if diff := cmp.Diff([]proxy.Key{same.Key}, ref.writes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]proxy.Key{extra.Key}, ref.masked); diff != "" || ref.sent != 3 {
		t.Errorf("%d sent; masked:\n%s", ref.sent, diff)
	}
	other.after = map[string]string{}
	other.changes = nil
	if _, differences := merge(one, other); len(differences) != 2 {
		t.Errorf("got %q", differences)
	}
}

func TestStatesAreEqualAfterEqualStories(t *testing.T) {
	object := func(uid, token, when string, conditions ...any) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "x", "uid": uid, "annotations": map[string]any{"of": uid + "@" + when}},
			"data":     map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))},
			"status":   map[string]any{"conditions": conditions},
		}
	}
	condition := func(name, status, when string) any {
		return map[string]any{"type": name, "status": status, "lastTransitionTime": when}
	}
	const one, other = "01234567-0123-0123-0123-0123456789ab", "fedcba98-0123-0123-0123-0123456789ab"
	const then, now = "2026-01-02T03:04:05Z", "2026-02-03T04:05:06.789Z"
	tokens := map[string]string{"t-1": "c1/reader#1", "t-2": "c1/reader#1", "t-3": "c1/reader#2"}
	a := withNames(normal(object(one, "t-1", then, condition("A", "True", then), condition("B", "True", then))), tokens)
	b := withNames(normal(object(other, "t-2", now, condition("B", "True", now), condition("A", "True", now))), tokens)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	for name, different := range map[string]string{
		"another token":  withNames(normal(object(one, "t-3", then, condition("A", "True", then), condition("B", "True", then))), tokens),
		"another status": withNames(normal(object(one, "t-1", then, condition("A", "True", then), condition("B", "False", then))), tokens),
		"a condition":    withNames(normal(object(one, "t-1", then, condition("A", "True", then))), tokens),
	} {
		if a == different {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestLateWrites(t *testing.T) {
	const resource, object = "clusterprofiles.multicluster.x-k8s.io", "team-a/c1"
	write := func(resource, object string, code int) proxy.Write {
		return proxy.Write{Key: proxy.Key{Verb: "patch", Resource: resource, Object: object}, Code: code}
	}
	for _, code := range []int{http.StatusConflict, http.StatusNotFound} {
		refused := write(resource+"/status", object, code)
		all := []proxy.Write{
			refused, write(resource+"/status", object, http.StatusOK), write(resource, "team-a/c2", code),
			refused, // again
		}
		for fault, want := range map[proxy.Kind][]proxy.Write{
			proxy.EventDropped: all[1:], proxy.EventDelayed: all[1:], proxy.EventDuplicated: all,
		} {
			got := lateWrites(all, proxy.Fault{Kind: fault, Key: proxy.Key{Resource: resource, Object: object}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d, %s (-want +got):\n%s", code, fault, diff)
			}
		}
	}
}

// The cache of a closed watch may show an object for longer than the manager waits for its deletion.
func TestOneLateDeletionOfWhatIsGoneIsRight(t *testing.T) {
	const resource = "clusterprofiles.multicluster.x-k8s.io"
	deleted := func(resource, object string, n, code int) proxy.Write {
		return proxy.Write{Key: proxy.Key{Verb: "delete", Resource: resource, Object: object, N: n}, Code: code}
	}
	all := []proxy.Write{
		deleted(resource, "team-a/c1", 2, http.StatusNotFound), deleted(resource, "team-a/c2", 2, http.StatusNotFound),
		deleted(resource, "team-a/c1", 3, http.StatusNotFound), deleted(resource, "team-a/c3", 1, http.StatusOK),
		deleted("secrets", "team-a/c1-reader", 2, http.StatusNotFound),
	}
	closed := proxy.Fault{Kind: proxy.WatchClosed, Key: proxy.Key{Resource: resource}}
	if diff := cmp.Diff(all[2:], lateWrites(all, closed)); diff != "" {
		t.Errorf("if watches are closed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, lateWrites(all, proxy.Fault{Kind: proxy.Lost, Key: all[0].Key})); diff != "" {
		t.Errorf("if a response is lost (-want +got):\n%s", diff)
	}
}

// compare checks what each finding contains.
func compare(t *testing.T, findings, want []string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Fatalf("got %q, want %d findings", findings, len(want))
	}
	for i := range findings {
		if !strings.Contains(findings[i], want[i]) {
			t.Errorf("got %q, want %q", findings[i], want[i])
		}
	}
}

func TestOnlyLeadersMayEnd(t *testing.T) {
	const ends, panics = "manager: exit status 1, after it had logged:\nleader election lost", "panic: runtime error"
	for _, test := range []struct {
		fault proxy.Kind
		how   string
		want  bool
	}{
		{paused, ends, true}, {restarted, ends, true}, {restored, ends, true}, {proxy.None, ends, false},
		{paused, ends + "\n" + panics, false}, {paused, "exit status 1", false},
		{restored, "manager: connecting to the hub", true}, {paused, "manager: connecting to the hub", false},
		{restored, "the hub was restored: this manager writes nothing more", true},
	} {
		if got := mayEnd(test.fault, test.how); got != test.want {
			t.Errorf("%s: %q: %t", test.fault, test.how, got)
		}
	}
}

func TestWhatMustNeverHappenCountsAtOnce(t *testing.T) {
	for text, want := range map[string]bool{
		ofState + ": it differs": true, ofQuiet + ": a write": true, ofToken + ": it is there": false, ofExit + ": 1": false,
	} {
		if got := (outcome{Verdict: finding, Findings: []string{text}}).mayRepeat(); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if (outcome{Verdict: passed}).mayRepeat() || !(outcome{Verdict: broken}).mayRepeat() {
		t.Error("only what failed may be repeated")
	}
}
