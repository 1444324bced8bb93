package decide

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MemberFacts says which profiles have which member id, and which clusters ask for which.
// Consumers act on the oldest of a namespace's profiles with one id, and on none if the two
// oldest were created in the same second (KEP-4322).
type MemberFacts struct {
	Hidden         bool // ClusterProfiles
	HiddenClusters bool

	profiles map[member][]memberProfile
	clusters map[string]*clusterv1.ManagedCluster // what matters of them, by name
}

type member struct{ namespace, id string }

type memberProfile struct {
	name    string
	created time.Time
	isOurs  bool
}

// Add adds one profile, of any cluster manager.
func (m *MemberFacts) Add(profile *inventoryv1alpha1.ClusterProfile) {
	id := profile.Labels[contract.LabelInventoryMemberID]
	if id == "" {
		return
	}
	if m.profiles == nil {
		m.profiles = map[member][]memberProfile{}
	}
	key := member{profile.Namespace, id}
	m.profiles[key] = append(m.profiles[key],
		memberProfile{profile.Name, profile.CreationTimestamp.Time, rule.IsMarked(profile)})
}

// AddCluster adds one cluster.
func (m *MemberFacts) AddCluster(cluster *clusterv1.ManagedCluster) {
	if m.clusters == nil {
		m.clusters = map[string]*clusterv1.ManagedCluster{}
	}
	kept := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, CreationTimestamp: cluster.CreationTimestamp},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient},
	}
	if id, asks := cluster.Labels[contract.LabelInventoryMemberID]; asks {
		kept.Labels = map[string]string{contract.LabelInventoryMemberID: id}
	}
	m.clusters[cluster.Name] = kept
}

// Check says whether consumers act on every profile.
func (m MemberFacts) Check() Finding {
	const name = "member ids"
	if m.Hidden {
		return notVisible(name, "ClusterProfiles")
	}
	var wrong []string
	for key, profiles := range m.profiles {
		if len(profiles) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s in namespace %s is that of %s",
				kube.Quote(key.id), key.namespace, sharedBy(profiles)))
		}
	}
	slices.Sort(wrong)
	for _, t := range m.ties() {
		wrong = append(wrong, t.String())
	}
	switch {
	case len(wrong) > 0:
		text := strings.Join(wrong[:min(len(wrong), MaxClusters)], "; ")
		if more := len(wrong) - MaxClusters; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		return problem(name, text, ownIDs())
	case m.HiddenClusters:
		return notVisible(name, "ManagedClusters, whose labels ask for member ids")
	case len(m.profiles) == 0:
		return notConfigured(name, "no ClusterProfile has a member id")
	default:
		return ok(name, "no two ClusterProfiles of a namespace have the same")
	}
}

func ownIDs() string {
	return "give each cluster an id of its own: " + docs.URL("docs/compatibility.md#clusterprofile-v1alpha2")
}

// sharedBy names the profiles that have one id, and which of them consumers use.
func sharedBy(profiles []memberProfile) string {
	profiles = slices.SortedFunc(slices.Values(profiles), func(a, b memberProfile) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, len(profiles))
	for _, profile := range profiles {
		names = append(names, profile.name)
	}
	which := "consumers use the oldest, " + names[0]
	if profiles[0].created.Equal(profiles[1].created) {
		which = "consumers use none, because the oldest were created in the same second"
	}
	return kube.ListNames(names, MaxClusters) + ": " + which
}

// tie is a member id that several clusters may have.
type tie struct {
	id, holder, why string

	// named have their names as ids instead, and without have no id.
	named, without []string
}

func (t tie) String() string {
	var others []string
	add := func(names []string, one, many string) {
		switch len(names) {
		case 0:
		case 1:
			others = append(others, names[0]+" "+one)
		default:
			others = append(others, kube.ListNames(names, MaxClusters)+" "+many)
		}
	}
	add(t.named, "asks for it and has its name instead", "ask for it and have their names instead")
	add(t.without, "has none until it is free", "have none until it is free")
	return fmt.Sprintf("%s is that of cluster %s, because %s: %s",
		kube.Quote(t.id), t.holder, t.why, strings.Join(others, ", "))
}

// ties returns who has the ids that an accepted cluster does not get, sorted by id. Each cluster
// is looked at once for each id, of however many there are.
func (m MemberFacts) ties() []tie {
	if m.HiddenClusters {
		return nil
	}
	claimants := m.claimants()
	holders := map[string]string{}
	holder := func(id string) string {
		if _, known := holders[id]; !known {
			holders[id] = profiles.MemberIDHolder(id, "", slices.Collect(maps.Values(claimants[id])))
		}
		return holders[id]
	}
	found := map[string]*tie{}
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		cluster := m.clusters[name]
		if !cluster.Spec.HubAcceptsClient {
			continue
		}
		member := profiles.MemberIDOf(cluster, holder)
		refused := member.Refused
		if refused == "" {
			continue
		}
		if found[refused] == nil {
			has := holder(refused)
			found[refused] = &tie{id: refused, holder: has, why: whyHolds(refused, claimants[refused][has])}
		}
		if t := found[refused]; member.ID == "" {
			t.without = append(t.without, name)
		} else {
			t.named = append(t.named, name)
		}
	}
	ties := make([]tie, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		ties = append(ties, *found[id])
	}
	return ties
}

func whyHolds(id string, holder rule.MemberIDClaimant) string {
	switch {
	case holder.Name == id:
		return "it is its name"
	case holder.Holds:
		return "its ClusterProfiles have it already"
	default:
		return "it is the oldest that asks for it"
	}
}

// claimants returns the clusters that may have an id, by id and name.
func (m MemberFacts) claimants() map[string]map[string]rule.MemberIDClaimant {
	found := map[string]map[string]rule.MemberIDClaimant{}
	add := func(id, name string, holds bool) {
		if found[id] == nil {
			found[id] = map[string]rule.MemberIDClaimant{}
		}
		claimant := rule.MemberIDClaimant{Name: name, Holds: holds || found[id][name].Holds}
		if cluster := m.clusters[name]; cluster != nil {
			claimant.Created = cluster.CreationTimestamp.Time
		}
		found[id][name] = claimant
	}
	for name, cluster := range m.clusters {
		for _, id := range profiles.MemberIDsOf(cluster) {
			if rule.ClaimsMemberID(cluster, id, "") {
				add(id, name, false)
			}
		}
	}
	for key, profiles := range m.profiles {
		for _, profile := range profiles {
			if profile.isOurs {
				add(key.id, profile.name, true)
			}
		}
	}
	return found
}

// steps returns what is to be said about the member id of a pair's profile, nil if nothing is.
func (m MemberFacts) steps(namespace, cluster string) (said []Finding) {
	for key, profiles := range m.profiles {
		if key.namespace == namespace && len(profiles) > 1 &&
			slices.ContainsFunc(profiles, func(p memberProfile) bool { return p.name == cluster }) {
			text := fmt.Sprintf("%s is that of %s", kube.Quote(key.id), sharedBy(profiles))
			return []Finding{missing(stepMember, text, ownIDs())}
		}
	}
	for _, t := range m.ties() {
		switch {
		case slices.Contains(t.named, cluster), slices.Contains(t.without, cluster):
			return []Finding{missing(stepMember, t.String(), ownIDs())}
		case t.holder == cluster:
			said = []Finding{done(stepMember, t.String())}
		}
	}
	return said
}
