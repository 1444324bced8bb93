package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// PairFacts is what a reader may know about one pair of namespace and cluster.
type PairFacts struct {
	Namespace, Cluster string

	Installation Object[addonv1beta1.ClusterManagementAddOn]
	Settings     settings.Settings

	Facts         rule.Facts
	HiddenProfile bool
	NoProfileAPI  bool // the hub serves no ClusterProfiles

	// Members are about the member ids that the cluster may have (MemberIDs).
	Members MemberFacts

	// Proxy is cluster-proxy's addon on the cluster.
	Proxy Object[addonv1beta1.ManagedClusterAddOn]

	// Accounts are those whose tokens may be copied.
	Accounts       []*authv1beta1.ManagedServiceAccount
	HiddenAccounts bool

	HiddenEvents bool
	events       map[eventKey]*eventsv1.Event
}

// IsVisible reports whether anything of the pair may be read.
func (p PairFacts) IsVisible() bool {
	h := p.Facts.Hidden
	return !h.Clusters || !h.Addons || !h.Bindings || !h.Placements || !p.HiddenProfile
}

// Names of the steps after those of the rule.
const (
	stepProfile = "profile"
	stepMember  = "member id"
	stepAccess  = "access provider"
	stepToken   = "token"
	stepEvents  = "events"
)

// ExplainPair explains, step by step, why a cluster is published in a namespace or not.
func ExplainPair(p PairFacts, now time.Time) Explanation {
	result, steps := rule.Explain(p.Cluster, p.Facts)
	e := Explanation{Cluster: p.Cluster, Namespace: p.Namespace}
	for _, step := range steps {
		e.Steps = append(e.Steps, p.ruleStep(step))
	}
	e.Steps = append(e.Steps, p.profileStep(result))
	e.Steps = append(e.Steps, p.memberSteps()...)
	e.Steps = append(e.Steps, p.accessStep(), p.tokenStep(result, now))
	if p.HiddenEvents {
		e.Steps = append(e.Steps, notVisible(stepEvents, "Events, by which the manager says what the namespace lacks"))
	}
	e.Events = p.newest(now)
	return e
}

// ruleStep puts one condition of the rule into words.
func (p PairFacts) ruleStep(step rule.Step) Finding {
	name := string(step.Name)
	switch {
	case step.Hidden:
		return notVisible(name, strings.TrimPrefix(step.Why, rule.NotVisible))
	case step.Answer == rule.Yes:
		return p.doneStep(step)
	case step.Binding == nil && step.Name == rule.StepSet:
		return missing(name, "no ManagedClusterSet is bound here", "")
	case step.Name == rule.StepBinding:
		return p.bindingStep(step)
	default:
		return missing(name, "the cluster "+step.Why, p.fix(step))
	}
}

func (p PairFacts) doneStep(step rule.Step) Finding {
	name := string(step.Name)
	switch step.Name {
	case rule.StepAddon:
		text := "the cluster has the addon " + contract.AddonName + ignoredNamespace(p.Facts.Addon)
		available := ConditionOf(p.Facts.Addon, "Available")
		if available != nil && available.Status != metav1.ConditionTrue {
			text += "; its agent is not available: " + kube.Shorten(available.Message, MaxMessageBytes)
		}
		return done(name, text)
	case rule.StepAccepted:
		return done(name, "the hub accepts the cluster")
	case rule.StepBinding:
		return done(name, fmt.Sprintf("ManagedClusterSetBinding %s is bound", step.Binding.Binding.Name))
	case rule.StepSet:
		return done(name, fmt.Sprintf("ManagedClusterSet %s selects the cluster", step.Binding.Binding.Spec.ClusterSet))
	default:
		if step.Unused {
			return notConfigured(name, "no Placement restricts the namespace")
		}
		return done(name, "a Placement labeled "+contract.LabelPublish+"=true decides for the cluster")
	}
}

func (p PairFacts) bindingStep(step rule.Step) Finding {
	name := string(step.Name)
	if step.Binding == nil {
		set := ""
		if p.Facts.Cluster != nil {
			set = p.Facts.Cluster.Labels[clusterv1beta2.ClusterSetLabel]
		}
		return missing(name, "no ManagedClusterSet is bound to the namespace",
			fmt.Sprintf("clusteradm clusterset bind %s --namespace %s", argument(set), p.Namespace))
	}
	binding := step.Binding.Binding
	text := step.Why
	if step.Answer == rule.Unknown {
		text = "the cluster " + step.Why
	}
	if bound := apimeta.FindStatusCondition(
		binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType); bound != nil && bound.Message != "" {
		text += ": " + kube.Shorten(bound.Message, MaxMessageBytes)
	}
	if binding.Labels[contract.LabelPublish] == "false" {
		return missing(name, step.Why, fmt.Sprintf("kubectl label managedclustersetbinding %s -n %s %s-",
			argument(binding.Name), p.Namespace, contract.LabelPublish))
	}
	return missing(name, text,
		fmt.Sprintf("kubectl describe managedclustersetbinding %s -n %s", argument(binding.Name), p.Namespace))
}

// fix returns the command that makes a condition of the rule true, or shows what to change.
func (p PairFacts) fix(step rule.Step) string {
	switch step.Name {
	case rule.StepAddon:
		switch {
		case p.Facts.Addon != nil:
			return describeAddon(p.Cluster)
		case p.Installation.Object == nil && !p.Installation.Hidden:
			return InstallChart()
		}
		return EnableAddon(p.Cluster)
	case rule.StepAccepted:
		switch {
		case p.Facts.Cluster == nil:
			return "clusteradm get token # prints how to join a cluster"
		case p.Facts.Cluster.DeletionTimestamp != nil:
			return "kubectl get managedcluster " + p.Cluster + " -o yaml"
		}
		return "clusteradm accept --clusters " + p.Cluster
	case rule.StepSet:
		return p.fixSet(step)
	default:
		if len(p.Facts.Placements) == 0 {
			return fmt.Sprintf("kubectl label placement PLACEMENT -n %s %s=true", p.Namespace, contract.LabelPublish)
		}
		return fmt.Sprintf("kubectl describe placements -n %s -l %s=true", p.Namespace, contract.LabelPublish)
	}
}

func (p PairFacts) fixSet(step rule.Step) string {
	if set := step.Binding.Set; set != nil && step.Answer == rule.No && rule.IsExclusive(set) {
		return fmt.Sprintf("clusteradm clusterset set %s --clusters %s", argument(set.Name), p.Cluster)
	}
	return fmt.Sprintf("kubectl get managedclusterset %s -o yaml", argument(step.Binding.Binding.Spec.ClusterSet))
}

// argument returns a name as an argument of a command. Tenants and spokes choose names, and
// readers may paste commands into a shell: an invalid name is left out.
func argument(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "NAME"
	}
	return name
}

// profileStep reports whether there is a profile and, if not, why, although the rule may
// want one.
func (p PairFacts) profileStep(result rule.Result) Finding {
	profile := p.Facts.Profile
	show := fmt.Sprintf("kubectl get clusterprofile %s -n %s -o yaml", p.Cluster, p.Namespace)
	switch {
	case p.NoProfileAPI:
		return missing(stepProfile, "the hub serves no ClusterProfiles: the chart installs the API", InstallChart())
	case p.HiddenProfile:
		return notVisible(stepProfile, "ClusterProfiles")
	case profile == nil && result.Answer == rule.Yes:
		_, why := notWritten(p.Facts.Addon, p.Namespace)
		return missing(stepProfile, "the cluster "+why, describeAddon(p.Cluster))
	case profile == nil && !p.Facts.Hidden.Any():
		return missing(stepProfile, "there is no ClusterProfile", "")
	case profile == nil:
		return missing(stepProfile, "there is no ClusterProfile",
			fmt.Sprintf("kubectl inventory explain %s -n %s # as the hub's administrator, who sees more",
				p.Cluster, p.Namespace))
	case !rule.IsOurs(profile):
		return missing(stepProfile, "the cluster "+foreignProfile(p.Facts), show)
	case profile.DeletionTimestamp != nil:
		return missing(stepProfile, "the ClusterProfile is being deleted and held by finalizers "+
			kube.Shorten(strings.Join(profile.Finalizers, ", "), MaxMessageBytes), show)
	case result.Answer == rule.No:
		return done(stepProfile, "the ClusterProfile still exists, although the cluster "+result.Why)
	case !rule.IsMarked(profile):
		return done(stepProfile, "the ClusterProfile exists; this addon has not adopted it")
	default:
		return done(stepProfile, "the ClusterProfile exists")
	}
}

// MemberIDs returns the member ids that the pair's cluster has, or may have.
func (p PairFacts) MemberIDs() []string {
	ids := []string{p.Cluster}
	if p.Facts.Cluster != nil {
		ids = profiles.MemberIDsOf(p.Facts.Cluster)
	}
	if p.Facts.Profile != nil {
		ids = append(ids, p.Facts.Profile.Labels[contract.LabelInventoryMemberID])
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" || len(validation.IsValidLabelValue(id)) > 0 })
	return kube.SortedNames(ids)
}

// IsTied reports whether other clusters may have one of the member ids.
func (p PairFacts) IsTied() bool {
	for name := range p.Members.clusters {
		if name != p.Cluster {
			return true
		}
	}
	profile := p.Facts.Profile
	return profile != nil && rule.IsMarked(profile) && profile.Labels[contract.LabelInventoryMemberID] == ""
}

// memberSteps says which member id the cluster does not get, or shares. Usually there is nothing
// to say.
func (p PairFacts) memberSteps() []Finding {
	if steps := p.Members.steps(p.Namespace, p.Cluster); steps != nil {
		return steps
	}
	profile := p.Facts.Profile
	if p.Facts.Cluster == nil || profile == nil || !rule.IsMarked(profile) || !p.Members.HiddenClusters ||
		profile.Labels[contract.LabelInventoryMemberID] == profiles.MemberIDsOf(p.Facts.Cluster)[0] {
		return nil
	}
	return []Finding{notVisible(stepMember, "ManagedClusters, of which another may have the id")}
}

// accessStep reports whether the profile says how to reach the cluster.
func (p PairFacts) accessStep() Finding {
	switch {
	case p.HiddenProfile:
		return notVisible(stepAccess, "ClusterProfiles")
	case p.Facts.Profile != nil && len(p.Facts.Profile.Status.AccessProviders) > 0:
		var names []string
		for _, provider := range p.Facts.Profile.Status.AccessProviders {
			names = append(names, kube.Shorten(provider.Name, MaxMessageBytes))
		}
		return done(stepAccess, "the ClusterProfile has "+strings.Join(names, ", "))
	case p.Proxy.Hidden:
		return notVisible(stepAccess, "ManagedClusterAddOns")
	case !p.Settings.ClusterProxy:
		return notConfigured(stepAccess, "the manager publishes no access through cluster-proxy "+
			"(access.clusterProxy.enabled=false)")
	case p.Proxy.Object == nil:
		return notConfigured(stepAccess, "the cluster has no addon cluster-proxy")
	case p.Facts.Profile == nil:
		return missing(stepAccess, "there is no ClusterProfile to hold it", "")
	}
	text := "the cluster has the addon cluster-proxy, but its ClusterProfile has no access provider"
	if synced := ConditionOf(p.Facts.Addon, contract.ConditionProfilesSynced); synced != nil &&
		synced.Status == metav1.ConditionFalse {
		if why := concerning(synced.Message, p.Namespace); why != "" {
			text += ": " + kube.Shorten(why, MaxMessageBytes)
		}
	}
	return missing(stepAccess, text, describeAddon(p.Cluster))
}

// tokenStep reports whether tokens are copied to the namespace, according to the accounts
// and the addon: the copies themselves are Secrets, which are not read.
func (p PairFacts) tokenStep(result rule.Result, now time.Time) Finding {
	switch {
	case p.Settings.CredentialsMode != settings.CopyingEnabled:
		return notConfigured(stepToken, "the manager copies no tokens (credentials.mode="+
			kube.Shorten(p.Settings.CredentialsMode, MaxMessageBytes)+")")
	case p.HiddenAccounts:
		return notVisible(stepToken, "ManagedServiceAccounts")
	}
	var wanted, unnamed, texts []string
	for _, account := range p.Accounts {
		preview := credentials.PreviewOf(
			account, p.Namespace, p.Settings.RequireTarget, result, p.Facts.Profile, now)
		switch {
		case !preview.Names:
			unnamed = append(unnamed, account.Name)
		case preview.Wanted && preview.Reason != "":
			return missing(stepToken, fmt.Sprintf("account %s is not copied: %s (%s)", account.Name,
				kube.Shorten(preview.Why, MaxMessageBytes), preview.Reason), fixToken(preview.Reason, account))
		case preview.Wanted:
			wanted = append(wanted, account.Name)
			texts = append(texts, fmt.Sprintf("Secret %s has the token of account %s%s",
				preview.Secret, account.Name, until(preview.Expires, now)))
		}
	}
	switch {
	case len(wanted) > 0:
		return p.copiedStep(wanted, strings.Join(texts, ", "))
	case len(unnamed) > 0:
		return notConfigured(stepToken, "account "+strings.Join(unnamed, ", ")+" names no namespaces: "+
			fmt.Sprintf("kubectl annotate managedserviceaccount %s -n %s %s=%s",
				argument(unnamed[0]), p.Cluster, contract.AnnotationSyncToNamespaces, p.Namespace))
	case len(p.Accounts) > 0:
		return notConfigured(stepToken, "no account of the cluster names the namespace")
	default:
		return notConfigured(stepToken,
			"the cluster has no ManagedServiceAccount labeled "+contract.LabelSyncToProfile+"=true")
	}
}

// copiedStep reports the addon's condition about accounts that should be copied.
func (p PairFacts) copiedStep(wanted []string, text string) Finding {
	state, why := reportedCopy(p.Facts, wanted, p.Namespace)
	switch {
	case state == Copied:
		return done(stepToken, text)
	case state == Failed:
		return missing(stepToken, kube.Shorten(why, MaxMessageBytes), describeAddon(p.Cluster))
	case p.Facts.Hidden.Addons:
		return NotVisible.Finding(stepToken, why)
	default:
		return notConfigured(stepToken, why)
	}
}

// fixToken returns the command that shows why a token is not copied.
func fixToken(reason string, account *authv1beta1.ManagedServiceAccount) string {
	if reason == contract.ReasonTargetNotEntitled || reason == contract.ReasonSelectionUnknown {
		return "" // the earlier steps say what to do
	}
	return fmt.Sprintf("kubectl describe managedserviceaccount %s -n %s", argument(account.Name), account.Namespace)
}

// until says how long something lasts; "" if it does not end.
func until(end, now time.Time) string {
	if end.IsZero() {
		return ""
	}
	return ", for another " + duration.HumanDuration(end.Sub(now))
}
