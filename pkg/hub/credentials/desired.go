package credentials

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// observed is what is known about one account and every namespace that it names or that
// holds a copy of its token.
type observed struct {
	key types.NamespacedName // the cluster's namespace, and the account's name
	now time.Time

	// known is true if the accounts are known.
	known   bool
	account *authv1beta1.ManagedServiceAccount // nil if there is no labelled one

	// restoring is true if accounts may be incomplete, because their CRD was deleted or recreated, or the
	// cache is older than the hub: nothing is withdrawn because of what an account lacks.
	restoring bool

	// silent is true if the account names no namespaces and need not: then no consumer expects a
	// copy where the cluster is not published.
	silent bool

	// uncounted is how many namespaces the account names beyond the limit.
	uncounted int

	draining bool

	// paused is true while upstream's own syncer is on: then nothing is written. The same
	// applies while that is unknown: unknown says why.
	paused  bool
	unknown string

	// finding is the result of the last read of the token. current is true unless it is
	// time to read again.
	finding source.Finding
	current bool

	targets []observedTarget // by namespace

	// again is how soon time alone will change the rule's answer; zero means never.
	again time.Duration
}

// needsToken reports whether the account's token is about to be read, for a first copy or, while the cache may be
// older than the hub (lags), for any.
func (o observed) needsToken(lags bool) bool {
	isCopied := func(t observedTarget) bool { return t.copy.Present }
	isNeeded := func(t observedTarget) bool {
		return !t.blocked && o.isPublished(t) || lags && isCopied(t) && decideTarget(o, t).needsCopy()
	}
	return !o.current && !isUnusable(o.account, o.now) &&
		(lags || !slices.ContainsFunc(o.targets, isCopied)) && slices.ContainsFunc(o.targets, isNeeded)
}

// isPublished reports whether there must be a copy in a namespace, unless the token itself forbids it.
func (o observed) isPublished(t observedTarget) bool {
	what, _, _ := decideAction(o, t)
	return what == publish
}

// observedTarget is what is known about one namespace.
type observedTarget struct {
	namespace string

	// wanted is true if the account itself allows copying there.
	wanted    bool
	selection selection.Result
	profile   observedProfile

	// rivals are the other accounts that would be copied there under the same name.
	rivals []types.NamespacedName

	// holder is the other account whose copy exists there under the same name; zero if
	// there is none.
	holder types.NamespacedName

	copy target.Known

	// blocked is true while no copy can be written there, because the namespace has its
	// maximum in flight or because a write failed a short while ago.
	blocked bool

	// stuck is true once withdrawing the copy has failed for so long that it is no longer urgent.
	stuck bool

	// contested is true while another client keeps changing the copy.
	contested bool

	// err is the error that left it unknown whether a copy may exist there.
	err error
}

// observedProfile is the ClusterProfile of a pair. The zero value means that there is none
// that may own a copy, or not yet.
type observedProfile struct {
	owner target.Owner // of ours

	// why there can be no copy with the existing profile, to complete a sentence that
	// begins with the cluster.
	why string
}

// isIncomplete reports whether an account (nil: none) lacks what its copies depend on.
func isIncomplete(account *authv1beta1.ManagedServiceAccount) bool {
	return account == nil || account.DeletionTimestamp != nil || account.Status.TokenSecretRef == nil
}

// isUnusable reports whether copies of an account's token must go: it is incomplete, or its status refuses it.
func isUnusable(account *authv1beta1.ManagedServiceAccount, now time.Time) bool {
	return isIncomplete(account) || source.ReferenceOf(account).Refusal(account.Name, now).Problem != ""
}

// profileState summarizes a pair's profile; nil means that there is none.
func profileState(profile *inventoryv1alpha1.ClusterProfile) observedProfile {
	switch {
	case profile == nil:
		return observedProfile{}
	case profile.Spec.ClusterManager.Name != contract.ClusterManagerName:
		manager := profile.Spec.ClusterManager.Name
		return observedProfile{why: fmt.Sprintf("has a ClusterProfile of cluster manager %q in its place", manager)}
	case profile.DeletionTimestamp != nil:
		held := strings.Join(profile.Finalizers, ", ")
		return observedProfile{why: "has a ClusterProfile there that is being deleted and held by finalizers " + held}
	default:
		// This includes a profile without our labels. They prove nothing; it is about to be
		// adopted or repaired, in place, or belongs to OCM's own controller.
		return observedProfile{owner: target.Owner{UID: profile.UID, Name: profile.Name}}
	}
}

// action is what to do about one account in one namespace.
type action int

const (
	// leave neither creates, changes nor deletes anything.
	leave action = iota
	// withdraw deletes the copy, if there is one.
	withdraw
	// maintain keeps an existing copy up to date, but creates none.
	maintain
	// publish makes sure that there is a copy.
	publish
)

// decision is the decision about one namespace.
type decision struct {
	observedTarget
	action action

	// reason and why say, for people, what prevents the copy; reason is empty if there is
	// nothing to report.
	reason string
	why    string
}

// needsCopy reports whether there must be a copy, or an existing one must be kept up to
// date.
func (d decision) needsCopy() bool {
	return d.action == publish || d.action == maintain && d.copy.Present
}

// decideTarget applies what always forbids a copy, what forbids one in this namespace, and
// what is still unknown, in this order. Of accounts whose copies would have one name, the
// one with an existing copy keeps it; otherwise a later account could take another's token
// away. If no copy exists, it is unclear whose name it is, and none is created.
func decideTarget(o observed, t observedTarget) decision {
	d := decision{observedTarget: t}
	d.action, d.reason, d.why = decideAction(o, t)
	if o.silent && d.reason == contract.ReasonTargetNotEntitled {
		d.reason, d.why = "", ""
	}
	return d
}

func decideAction(o observed, t observedTarget) (what action, reason, why string) {
	name := target.Name(o.key)
	switch {
	case o.draining:
		return withdraw, "", ""
	case o.known && (o.account == nil || o.account.DeletionTimestamp != nil || !t.wanted):
		return withdraw, "", ""
	case !isNamespace(t.namespace):
		return leave, contract.ReasonTargetNotEntitled, "that is not a name a namespace can have"
	case len(name) > target.MaxNameBytes:
		return withdraw, contract.ReasonNameTooLong, fmt.Sprintf(
			"the Secret's name would have %d bytes, and %d are allowed; give the account a shorter name",
			len(name), target.MaxNameBytes)
	case t.selection.Answer == selection.No:
		return withdraw, contract.ReasonTargetNotEntitled, "the cluster " + t.selection.Why
	case t.profile.why != "":
		return withdraw, contract.ReasonTargetNotEntitled, "the cluster " + t.profile.why
	case t.holder != types.NamespacedName{}:
		return withdraw, contract.ReasonNameCollision, fmt.Sprintf("the Secret %s there is the copy of %s; "+
			"rename one of these accounts", name, accountNames([]types.NamespacedName{t.holder}))
	case len(t.rivals) > 0 && !t.copy.Present:
		// A withdrawal would delete a copy that the namespace's follower shows only now: ours, which must stay.
		return leave, contract.ReasonNameCollision, fmt.Sprintf("the Secret %s would also be that of %s; "+
			"rename all but one of these accounts", name, accountNames(t.rivals))
	case !o.known:
		return leave, "", ""
	case o.paused, o.unknown != "":
		return leave, "", ""
	case t.err != nil:
		return maintain, "", ""
	case t.selection.Answer == selection.Unknown:
		return maintain, contract.ReasonSelectionUnknown, "the cluster " + t.selection.Why
	case t.profile.owner.UID == "":
		return maintain, contract.ReasonTargetNotEntitled, "the cluster's ClusterProfile is not there yet"
	default:
		return publish, "", ""
	}
}

// isUnconfirmed reports whether nothing shows that a copy may exist in a namespace, so that it may
// expire, but no other token is written: the rule's caches cannot be read or trusted, or have lacked
// the addon or the cluster among the decisions of Placements, only not for long enough to withdraw
// the copy. While a set cannot be read or a Placement is undecided, an existing copy is kept up to
// date.
func (t observedTarget) isUnconfirmed() bool {
	isUnknown := t.selection.Answer == selection.Unknown
	return t.err != nil || isUnknown && (t.selection.Untrusted || t.selection.ByPlacement || t.selection.ByAddon)
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func accountNames(accounts []types.NamespacedName) string {
	names := make([]string, 0, len(accounts))
	for _, account := range accounts {
		names = append(names, fmt.Sprintf("account %s of cluster %s", account.Name, account.Namespace))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// tokenUse says what the account's token is needed for.
type tokenUse int

const (
	// unused: nothing is copied.
	unused tokenUse = iota
	// refused: the account's status says that the token must not be used.
	refused
	// unchanged: the last finding stands, and every copy is known to hold it.
	unchanged
	// postponed: the token is not needed before a copy can be written.
	postponed
	// toRead: the token must be read.
	toRead
)

// plan is what follows from the caches, before the token is read.
type plan struct {
	observed
	decisions []decision // by namespace
	token     tokenUse
	found     source.Finding // unless the token is to be read
	problems  []report.Problem
}

// decide plans what to do about an account.
func decide(o observed) plan {
	p := plan{observed: o, problems: generalProblems(o)}
	if o.uncounted > 0 {
		where := fmt.Sprintf("%d more namespaces", o.uncounted)
		text := fmt.Sprintf("only the first %d that its annotation names count", contract.MaxTargets)
		p.problems = append(p.problems,
			report.Problem{Reason: contract.ReasonTargetNotEntitled, Namespace: where, Text: text})
	}
	for _, t := range o.targets {
		d := decideTarget(o, t)
		p.decisions = append(p.decisions, d)
		if d.reason != "" && o.account != nil {
			p.problems = append(p.problems, report.Problem{Reason: d.reason, Namespace: d.namespace, Text: d.why})
		}
		if t.contested {
			p.problems = append(p.problems, contestedProblem(grants.Target(t.namespace), "Secret", target.Name(o.key)))
		}
	}
	if !slices.ContainsFunc(p.decisions, decision.needsCopy) {
		return p
	}
	refusal := source.ReferenceOf(o.account).Refusal(o.account.Name, o.now)
	switch {
	case refusal.Problem != "":
		p.token, p.found = refused, refusal
	case o.current && (o.finding.Problem != "" || p.allHold(o.finding)):
		p.token, p.found = unchanged, o.finding
	case o.current && !p.mayWrite(o.finding):
		p.token, p.found = postponed, o.finding
	case !o.current && !p.hasCopies() && !p.mayWrite(source.Finding{}):
		p.token = postponed // of which nothing is known
	default:
		p.token = toRead
	}
	return p
}

// contestedProblem says that another client keeps changing an object on which copies depend, and for
// which the manager has a right.
func contestedProblem(at grants.Grant, kind, name string) report.Problem {
	const text = "another client keeps changing %s %s/%s, so it is repaired at most every %s; find out which one, " +
		"for instance from its metadata.managedFields"
	return report.Problem{
		Reason: contract.ReasonContested, Namespace: reportedIn(at),
		Text: fmt.Sprintf(text, kind, at.Namespace, name, kube.RepairEvery),
	}
}

// reportedIn returns the namespace in which problems with a right are reported; "" means everywhere.
func reportedIn(at grants.Grant) string {
	if at.IsTarget() {
		return at.Namespace
	}
	return ""
}

// generalProblems are the problems of an account in every namespace.
func generalProblems(o observed) []report.Problem {
	isNamed := slices.ContainsFunc(o.targets, func(t observedTarget) bool { return t.wanted })
	switch {
	case o.draining:
		return []report.Problem{{Reason: contract.ReasonDraining}}
	case o.unknown != "":
		return []report.Problem{{Reason: contract.ReasonUpstreamSyncerOn, Text: report.SyncerUnknown(o.unknown)}}
	case o.paused:
		return []report.Problem{{Reason: contract.ReasonUpstreamSyncerOn}}
	case o.account != nil && o.account.DeletionTimestamp == nil && !o.silent && !isNamed:
		return []report.Problem{{Reason: contract.ReasonNoTarget}}
	default:
		return nil
	}
}

// allHold reports whether every needed copy is known to hold the found token.
func (p plan) allHold(found source.Finding) bool {
	return !slices.ContainsFunc(p.decisions, func(d decision) bool {
		return d.needsCopy() && !d.copy.Holds(found.Digest, d.profile.owner)
	})
}

// hasCopies reports whether there are copies that depend on the token.
func (p plan) hasCopies() bool {
	return slices.ContainsFunc(p.decisions, func(d decision) bool { return d.needsCopy() && d.copy.Present })
}

// mayWrite reports whether a copy that is not known to hold the found token could be
// written now.
func (p plan) mayWrite(found source.Finding) bool {
	return slices.ContainsFunc(p.decisions, func(d decision) bool {
		return d.needsCopy() && !d.blocked && !d.isUnconfirmed() && !d.copy.Holds(found.Digest, d.profile.owner)
	})
}

// mayAttempt reports whether a failed attempt may have to be repeated.
func (p plan) mayAttempt(what operationID) bool {
	switch what.kind {
	case reading:
		return p.token == toRead || p.token == postponed
	case writing:
		return p.mayHold(what.namespace)
	default:
		return slices.ContainsFunc(p.decisions, func(d decision) bool {
			return d.namespace == what.namespace && d.copy.Present
		})
	}
}

// mayHold reports whether the account may have a copy in a namespace, from what is known
// before the token is read.
func (p plan) mayHold(namespace string) bool {
	return p.token != refused && slices.ContainsFunc(p.decisions, func(d decision) bool {
		return d.namespace == namespace && (d.action == publish || d.action == maintain)
	})
}

// withdrawals returns the namespaces where no copy may exist, regardless of the token.
func (p plan) withdrawals() []string {
	var namespaces []string
	for _, d := range p.decisions {
		if d.action == withdraw {
			namespaces = append(namespaces, d.namespace)
		}
	}
	return namespaces
}

// takesAway reports whether a copy must be withdrawn urgently, from what is known before the token is
// read.
func (p plan) takesAway(now time.Time) bool {
	isFound := p.token == unchanged || p.token == postponed && p.current
	invalid := p.token == refused || isFound && p.found.At(now).Problem != ""
	return slices.ContainsFunc(p.decisions, func(d decision) bool {
		return d.copy.Present && !d.stuck && (d.action == withdraw || invalid && d.needsCopy())
	})
}

// final is the decision once the token is known, for the needed copies.
type final struct {
	withdraw []string   // namespaces
	write    []decision // copies to create or change
	problems []report.Problem
	again    time.Duration
}

// decideFinally decides about the needed copies, from the result of reading the token.
func decideFinally(p plan, found source.Finding, now time.Time) final {
	var f final
	if p.token == unused {
		return f
	}
	if p.token == postponed && !p.current {
		f.write = slices.DeleteFunc(slices.Clone(p.decisions), func(d decision) bool { return !d.needsCopy() })
		return f
	}
	if !found.Next.IsZero() {
		f.again = timeUntil(found.Next, now)
	}
	if found = found.At(now); found.Problem != "" {
		f.problems = []report.Problem{{Reason: contract.ReasonInvalidSource, Text: found.Problem}}
	} else {
		f.again = kube.Sooner(f.again, timeUntil(found.Expires, now))
	}
	for _, d := range p.decisions {
		switch {
		case !d.needsCopy():
		case found.Problem != "":
			if !p.restoring { // otherwise the token may be about to be restored with the account
				f.withdraw = append(f.withdraw, d.namespace)
			}
		case d.isUnconfirmed():
		case !d.copy.Holds(found.Digest, d.profile.owner):
			f.write = append(f.write, d)
		}
	}
	return f
}

// countedEnd returns when a copied token expires; zero if there is none, or if its expiry
// is unknown.
func countedEnd(found source.Finding, now time.Time) time.Time {
	if found = found.At(now); found.Problem != "" || found.Digest == (bearer.Digest{}) {
		return time.Time{}
	}
	return found.Expires
}

// timeUntil returns the time until a moment, at least an instant.
func timeUntil(at, now time.Time) time.Duration { return max(at.Sub(now), time.Millisecond) }

// grantsOf returns the rights that an account needs: to its token if it is copied anywhere, and wherever
// there is a copy or must be one. It keeps others that it may need in a moment: while the cluster's
// selection is unknown, as for a while after a start, a copy that has not been observed yet may have to be
// kept up to date, and one that is missing may have to be created again. For the same reason, the right to
// the token stays until the last copy is gone: a manager that is restarted before would need it again.
// withdrawn are the namespaces where the token turned out to be unusable; isPresent reports where copies
// are.
func grantsOf(p plan, withdrawn []string, isPresent func(namespace string) bool) (needed, kept []grants.Grant) {
	mayCopy := false
	for _, d := range p.decisions {
		at, exists := grants.Target(d.namespace), isPresent(d.namespace)
		if exists || d.action == publish && p.token != refused && !slices.Contains(withdrawn, d.namespace) {
			needed = append(needed, at)
		}
		if d.action == maintain && p.token != refused {
			kept, mayCopy = append(kept, at), true
		}
		mayCopy = mayCopy || exists
	}
	switch {
	case p.token == unchanged || p.token == postponed || p.token == toRead:
		needed = append(needed, grants.Source(p.key.Namespace))
	case mayCopy:
		kept = append(kept, grants.Source(p.key.Namespace))
	}
	return needed, kept
}
