package credentials

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestRefusalsAreReportedToTheRightNamespaces(t *testing.T) {
	sees := func(namespace string) observedTarget {
		return observedTarget{
			namespace: namespace, wanted: true, profile: observedProfile{owner: target.Owner{UID: "u"}},
			selection: selection.Result{Answer: selection.Yes, Bindings: []string{"set"}},
		}
	}
	blind, doubtful, unnamed, foreign := sees("blind"), sees("doubtful"), sees("unnamed"), sees("foreign")
	blind.selection.Answer, doubtful.selection.Answer, unnamed.wanted = selection.No, selection.Unknown, false
	foreign.profile = observedProfile{why: `has a ClusterProfile of cluster manager "x" in its place`}
	o := observed{
		key:     types.NamespacedName{Namespace: "c", Name: "reader"},
		targets: []observedTarget{sees("a"), sees("b"), blind, doubtful, unnamed, foreign},
	}
	problem := func(reason, why string) notices.Problem {
		return notices.Problem{Cluster: "c", Reason: reason, Why: why, HasProfile: true, Bindings: []string{"set"}}
	}
	without := func(p notices.Problem) notices.Problem {
		p.HasProfile = false
		return p
	}
	for name, test := range map[string]struct {
		problems []report.Problem
		want     map[string][]notices.Problem
	}{
		"nothing is wrong": {},
		"everywhere: namespaces that see the cluster and are named": {
			problems: []report.Problem{{Reason: "InvalidSource", Text: "its token has expired"}},
			want: map[string][]notices.Problem{
				"a":       {problem("InvalidSource", "Account reader is not copied: its token has expired.")},
				"b":       {problem("InvalidSource", "Account reader is not copied: its token has expired.")},
				"foreign": {without(problem("InvalidSource", "Account reader is not copied: its token has expired."))},
			},
		},
		"in one namespace: that one alone": {
			problems: []report.Problem{{Reason: "ForeignSecret", Namespace: "b", Text: "Secret c-reader is in the way"}},
			want: map[string][]notices.Problem{
				"b": {problem("ForeignSecret", "Account reader is not copied: Secret c-reader is in the way.")},
			},
		},
		"another client's profile is in its place": {
			problems: []report.Problem{{Reason: "TargetNotEntitled", Namespace: "foreign", Text: "the cluster has a ClusterProfile of another"}},
			want: map[string][]notices.Problem{
				"foreign": {without(problem("TargetNotEntitled", "Account reader is not copied: the cluster has a ClusterProfile of another."))},
			},
		},
		"other accounts and clusters are not named": {
			problems: []report.Problem{{Reason: "NameCollision", Namespace: "a", Text: "the Secret c-reader there is the copy of account x of cluster hidden"}},
			want: map[string][]notices.Problem{"a": {problem("NameCollision", "Account reader is not copied: another account's copy has "+
				"the same name, or would have it; the hub's administrator has to rename one of the two accounts.")}},
		},
		"the cluster's namespace on the hub is not shown": {
			problems: []report.Problem{
				{Reason: "CopyFailed", Namespace: "", Text: `secrets "reader" is forbidden: User "manager" cannot get it in the namespace "c"`},
				{Reason: "Contested", Namespace: "", Text: "another client keeps changing RoleBinding c/token-source"},
			},
			want: func() map[string][]notices.Problem {
				const why = "Account reader could not be copied or withdrawn: the manager cannot read the token on " +
					"the hub; it keeps trying."
				both := []notices.Problem{problem("CopyFailed", why), problem("Contested", why)}
				return map[string][]notices.Problem{"a": both, "b": both, "foreign": {without(both[0]), without(both[1])}}
			}(),
		},
		"problems that do not concern them, or that others report": {
			problems: []report.Problem{
				{Reason: "TargetNotEntitled", Namespace: "blind", Text: "the cluster is not bound"}, {Reason: "TargetNotEntitled", Namespace: "a", Text: "no profile yet"},
				{Reason: "TargetNotEntitled", Namespace: "2 more namespaces", Text: "only the first count"}, {Reason: "SelectionUnknown", Namespace: "doubtful", Text: "?"},
				{Reason: "NoTarget"}, {Reason: "UpstreamSyncerOn"},
				{Reason: "ForeignSecret", Namespace: "blind", Text: "in the way"}, {Reason: "ForeignSecret", Namespace: "unnamed", Text: "in the way"},
			},
		},
		"it is unknown who writes": {
			problems: []report.Problem{{Reason: "UpstreamSyncerOn", Text: "No copies are written."}},
			want: map[string][]notices.Problem{
				"a": {problem("UpstreamSyncerOn", "No copies are written.")}, "b": {problem("UpstreamSyncerOn", "No copies are written.")},
				"foreign": {without(problem("UpstreamSyncerOn", "No copies are written."))},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, refusedIn(o, test.problems), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

// tenant may read the events of its namespace.
func (w *world) tenant(namespace string) client.Client {
	w.T.Helper()
	name := "tenant-of-" + namespace
	w.MustCreate(
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"get", "list"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
	cfg := w.srv.User(w.T, name)
	w.EventuallyAllowed(cfg, true, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "list", Group: "events.k8s.io", Resource: "events",
	})
	return apitest.NewClient(w.T, cfg, ocmtest.Scheme())
}

// A Secret in the way in one of three namespaces that an account names: the tenant there gets
// an event, once; the one whose namespace has the copy gets none, nor does the one whose
// namespace does not see the cluster. No namespace sees the events of others.
func TestTenantsGetEventsInTheirOwnNamespace(t *testing.T) {
	w := newWorld(t)
	w.opts.reportDelay = time.Second
	c, refused, served, blind := w.cluster(w.Name("c")), w.team(), w.team(), w.team()
	for _, team := range []string{refused, served} {
		w.publish(team, c)
		w.rule.say(team, c, selection.Result{Answer: selection.Yes, Bindings: []string{"set"}})
	}
	inTheWay := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: refused, Name: c + "-reader"}}
	w.MustCreate(inTheWay)
	account := w.Account(c, "reader", refused, served, blind)
	token := w.Rotate(account)
	w.start() // an account without a token is reported, too
	w.holds(served, c, "reader", token)

	tenants := map[string]client.Client{}
	for _, team := range []string{refused, served, blind} {
		tenants[team] = w.tenant(team)
	}
	eventsIn := func(namespace string) []string {
		events := &eventsv1.EventList{}
		apitest.Must(t, tenants[namespace].List(t.Context(), events, client.InNamespace(namespace)))
		var list []string
		for _, event := range events.Items {
			list = append(list, fmt.Sprintf("%s %s on %s %s by %s: %s", event.Type, event.Reason, event.Regarding.Kind,
				event.Regarding.Name, event.ReportingController, event.Note))
		}
		return list
	}
	once := func(when string) {
		t.Helper()
		start := "Warning ForeignSecret on ClusterProfile " + c + " by hub.credentials: Account reader is not copied: "
		got := eventsIn(refused)
		if len(got) != 1 || !strings.HasPrefix(got[0], start) || !strings.Contains(got[0], inTheWay.Name) {
			t.Errorf("%s the tenant gets %q", when, got)
		}
	}
	reported := func() {
		t.Helper()
		w.Eventually("an event is sent, and there", func() string {
			if len(w.wire.Writes("events")) == 0 || len(eventsIn(refused)) == 0 {
				return "none yet"
			}
			return ""
		})
		w.settle()
	}
	reported()
	once("at first")
	for _, other := range []string{served, blind} {
		if got := eventsIn(other); len(got) > 0 {
			t.Errorf("namespace %s gets %q", other, got)
		}
		err := tenants[refused].List(t.Context(), &eventsv1.EventList{}, client.InNamespace(other))
		if !apierrors.IsForbidden(err) {
			t.Errorf("the tenant of %s reads events of %s: %v", refused, other, err)
		}
	}
	sent := w.wire.Writes("events")
	if len(sent) != 1 || strings.Contains(sent[0].Body, token) || strings.Contains(sent[0].Body, blind) {
		t.Errorf("events sent: %v", sent)
	}

	// The next leader has nothing to add: the API server has that event already.
	w.wire.Reset()
	w.start()
	reported()
	once("after a restart")
}
