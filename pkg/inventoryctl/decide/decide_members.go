package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MemberFacts says which profiles of a namespace have one member id. Consumers act on the
// oldest of them, and on none if the two oldest were created in the same second (KEP-4322).
type MemberFacts struct {
	Hidden bool

	profiles map[member][]memberProfile
}

type member struct{ namespace, id string }

type memberProfile struct {
	name    string
	created time.Time
}

// Add adds one profile, of whatever cluster manager.
func (m *MemberFacts) Add(profile *inventoryv1alpha1.ClusterProfile) {
	id := profile.Labels[contract.LabelInventoryMemberID]
	if id == "" {
		return
	}
	if m.profiles == nil {
		m.profiles = map[member][]memberProfile{}
	}
	key := member{profile.Namespace, id}
	m.profiles[key] = append(m.profiles[key], memberProfile{profile.Name, profile.CreationTimestamp.Time})
}

func (m MemberFacts) check() Finding {
	const name = "member ids"
	if m.Hidden {
		return notVisible(name, "ClusterProfiles")
	}
	var shared []string
	for key, profiles := range m.profiles {
		if len(profiles) < 2 {
			continue
		}
		slices.SortFunc(profiles, func(a, b memberProfile) int {
			if order := a.created.Compare(b.created); order != 0 {
				return order
			}
			return strings.Compare(a.name, b.name)
		})
		names := make([]string, 0, len(profiles))
		for _, profile := range profiles {
			names = append(names, profile.name)
		}
		which := "consumers use the oldest, " + names[0]
		if profiles[0].created.Equal(profiles[1].created) {
			which = "consumers use none, because the oldest were created in the same second"
		}
		shared = append(shared, fmt.Sprintf("%s in namespace %s is that of %s: %s",
			kube.Quote(key.id), key.namespace, kube.ListNames(names, maxClusters), which))
	}
	switch slices.Sort(shared); {
	case len(shared) > 0:
		text := strings.Join(shared[:min(len(shared), maxClusters)], "; ")
		if more := len(shared) - maxClusters; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		return problem(name, text,
			"give each cluster an id of its own: "+docs.URL("docs/compatibility.md#clusterprofile-v1alpha2"))
	case len(m.profiles) == 0:
		return notConfigured(name, "no ClusterProfile has a member id")
	default:
		return ok(name, "no two ClusterProfiles of a namespace have the same")
	}
}
