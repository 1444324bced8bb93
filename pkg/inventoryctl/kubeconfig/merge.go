package kubeconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Extension marks the entries of a kubeconfig that belong to this program. It contains an owner.
const Extension = "inventory.open-cluster-management.io/kubeconfig"

// Named is the selection of clusters that the user named. Only a withdrawal ends it.
const Named = "named"

// id says what an entry stands for. A cluster has no account, a user has no cluster.
type id struct {
	Hub       string `json:"hub"` // the address of its API server
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster,omitempty"`
	Account   string `json:"account,omitempty"`
}

// owner is the content of the extension.
type owner struct {
	id `json:",inline"`

	// Selections are those that chose the context. It is pruned when the last one no longer does.
	Selections []string `json:"selections,omitempty"`
}

// Wanted are the contexts that one selection chooses, in one namespace of a hub.
type Wanted struct {
	Hub, Namespace string
	Accounts       []string
	Clusters       map[string]*clientcmdapi.Cluster // by name

	// Selection is a text that is the same whenever the same clusters are asked for.
	Selection string

	// IsWithdrawn reports whether a cluster is known to have no profile. IsKept reports whether the
	// selection still chooses one that is not in Clusters.
	IsWithdrawn, IsKept func(cluster string) bool

	// Prune removes what was withdrawn or is no longer chosen.
	Prune bool

	// Prefix begins the names of new entries.
	Prefix string

	Exec func(account string) *clientcmdapi.ExecConfig
}

// Change is what was done to a context.
type Change struct {
	Context string
	Action  string // created, updated, pruned
}

// What was done to a context.
const (
	Created = "created"
	Updated = "updated"
	Pruned  = "pruned"
)

// TakenError says that a name is used by something else.
type TakenError struct{ Kind, Name, By string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("the %s %q belongs to %s", e.Kind, e.Name, e.By)
}

// Merge makes a kubeconfig have the wanted contexts. It changes only entries of this program that
// belong to the same namespace of the same hub, and nothing if it returns an error. An entry that
// was renamed keeps its name.
func Merge(config *clientcmdapi.Config, wanted Wanted) ([]Change, error) {
	m := &merge{config: config.DeepCopy(), wanted: wanted, index: map[string]map[id]string{}}
	for _, account := range slices.Sorted(slices.Values(wanted.Accounts)) {
		if len(wanted.Clusters) == 0 {
			break
		}
		user, err := m.user(account)
		if err != nil {
			return nil, err
		}
		for _, cluster := range slices.Sorted(maps.Keys(wanted.Clusters)) {
			if err := m.context(cluster, account, user); err != nil {
				return nil, err
			}
		}
	}
	if wanted.Prune {
		m.prune()
	}
	m.dropUnused()
	*config = *m.config
	slices.SortFunc(m.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Action, b.Action))
	})
	return m.changes, nil
}

type merge struct {
	config  *clientcmdapi.Config
	wanted  Wanted
	changes []Change
	index   map[string]map[id]string // names of entries of ours, by kind
}

func (m *merge) id(cluster, account string) id {
	return id{m.wanted.Hub, m.wanted.Namespace, cluster, account}
}

// nameOf returns the name of the entry for an id: the one it has, or a new one, which no other
// entry may have.
func nameOf[T any](m *merge, kind string, entries map[string]T, extensions func(T) map[string]runtime.Object,
	wanted id, newName string,
) (string, error) {
	if m.index[kind] == nil {
		m.index[kind] = map[id]string{}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			found := ownerOf(extensions(entries[name]))
			if _, known := m.index[kind][found.id]; !known && found.Hub != "" {
				m.index[kind][found.id] = name
			}
		}
	}
	if name, ok := m.index[kind][wanted]; ok {
		return name, nil
	}
	newName = m.wanted.Prefix + newName
	if entry, taken := entries[newName]; taken {
		by := "another program"
		if of := ownerOf(extensions(entry)); of.Hub != "" {
			by = "namespace " + of.Namespace + " of the hub " + of.Hub
		}
		return "", &TakenError{Kind: kind, Name: newName, By: by}
	}
	m.index[kind][wanted] = newName
	return newName, nil
}

func ofContext(c *clientcmdapi.Context) map[string]runtime.Object  { return c.Extensions }
func ofCluster(c *clientcmdapi.Cluster) map[string]runtime.Object  { return c.Extensions }
func ofUser(user *clientcmdapi.AuthInfo) map[string]runtime.Object { return user.Extensions }

// user writes the user of an account, and returns its name.
func (m *merge) user(account string) (string, error) {
	of := m.id("", account)
	name, err := nameOf(m, "user", m.config.AuthInfos, ofUser, of, of.Namespace+"/"+account)
	if err == nil {
		m.config.AuthInfos[name] = &clientcmdapi.AuthInfo{
			Exec: m.wanted.Exec(account), Extensions: mark(nil, owner{id: of}),
		}
	}
	return name, err
}

// context writes the context of a cluster and an account, and its cluster.
func (m *merge) context(cluster, account, user string) error {
	of := m.id(cluster, "")
	clusterName, err := nameOf(m, "cluster", m.config.Clusters, ofCluster, of, cluster+"/"+of.Namespace)
	if err != nil {
		return err
	}
	of = m.id(cluster, account)
	name, err := nameOf(m, "context", m.config.Contexts, ofContext, of, cluster+"/"+of.Namespace+"/"+account)
	if err != nil {
		return err
	}
	server := m.wanted.Clusters[cluster].DeepCopy()
	server.Extensions = mark(server.Extensions, owner{id: m.id(cluster, "")})
	context := &clientcmdapi.Context{}
	before, existed := m.config.Contexts[name]
	if existed {
		context = before.DeepCopy() // the user may have chosen a namespace
	}
	context.Cluster, context.AuthInfo = clusterName, user
	selections := ownerOf(context.Extensions).Selections
	if !slices.Contains(selections, m.wanted.Selection) {
		selections = append(selections, m.wanted.Selection)
	}
	context.Extensions = mark(context.Extensions, owner{id: of, Selections: selections})
	switch {
	case !existed:
		m.changes = append(m.changes, Change{name, Created})
	case !sameCluster(m.config.Clusters[clusterName], server) || before.Cluster != clusterName || before.AuthInfo != user:
		m.changes = append(m.changes, Change{name, Updated})
	}
	m.config.Contexts[name], m.config.Clusters[clusterName] = context, server
	return nil
}

func sameCluster(a, b *clientcmdapi.Cluster) bool {
	if a == nil {
		return false
	}
	x, y := *a, *b
	x.Extensions, y.Extensions = nil, nil
	x.LocationOfOrigin, y.LocationOfOrigin = "", ""
	return apiequality.Semantic.DeepEqual(x, y)
}

// prune removes contexts whose cluster was withdrawn, and those that no selection chooses any more.
func (m *merge) prune() {
	for name, context := range m.config.Contexts {
		of := ownerOf(context.Extensions)
		if of.Hub != m.wanted.Hub || of.Namespace != m.wanted.Namespace {
			continue
		}
		gone := m.wanted.IsWithdrawn(of.Cluster)
		_, chosen := m.wanted.Clusters[of.Cluster]
		if !gone && !chosen && m.wanted.Selection != Named && slices.Contains(m.wanted.Accounts, of.Account) &&
			!m.wanted.IsKept(of.Cluster) {
			before := len(of.Selections)
			of.Selections = slices.DeleteFunc(of.Selections, func(s string) bool { return s == m.wanted.Selection })
			gone = before > 0 && len(of.Selections) == 0
			context.Extensions = mark(context.Extensions, of)
		}
		if gone {
			delete(m.config.Contexts, name)
			m.changes = append(m.changes, Change{name, Pruned})
		}
	}
}

// dropUnused removes clusters and users of the same namespace that no context uses any more,
// not even one of another program.
func (m *merge) dropUnused() {
	clusters, users := map[string]bool{}, map[string]bool{}
	for _, context := range m.config.Contexts {
		clusters[context.Cluster], users[context.AuthInfo] = true, true
	}
	isOurs := func(extensions map[string]runtime.Object) bool {
		of := ownerOf(extensions)
		return of.Hub == m.wanted.Hub && of.Namespace == m.wanted.Namespace
	}
	maps.DeleteFunc(m.config.Clusters, func(name string, c *clientcmdapi.Cluster) bool {
		return !clusters[name] && isOurs(c.Extensions)
	})
	maps.DeleteFunc(m.config.AuthInfos, func(name string, user *clientcmdapi.AuthInfo) bool {
		return !users[name] && isOurs(user.Extensions)
	})
}

// mark sets the extension.
func mark(extensions map[string]runtime.Object, of owner) map[string]runtime.Object {
	content, _ := json.Marshal(of) // strings only, so it cannot fail
	marked := maps.Clone(extensions)
	if marked == nil {
		marked = map[string]runtime.Object{}
	}
	marked[Extension] = &runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}
	return marked
}

// ownerOf returns the owner that an extension names; none if there is no readable one.
func ownerOf(extensions map[string]runtime.Object) owner {
	var of owner
	unknown, ok := extensions[Extension].(*runtime.Unknown)
	if !ok || json.Unmarshal(unknown.Raw, &of) != nil || of.Namespace == "" {
		return owner{}
	}
	return of
}
