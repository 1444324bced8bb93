package credentials

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is what the rule of what is published where says of one pair of
// namespace and cluster. Only No takes a copy away.
type Answer int

const (
	// Unknown says that it cannot be told, or not yet.
	Unknown Answer = iota
	// No says that the namespace is to know nothing of the cluster.
	No
	// Yes says that the namespace is to have a ClusterProfile of the cluster.
	Yes
)

// Selection is the rule's answer for one pair.
type Selection struct {
	Answer Answer

	// Why is, for No and Unknown, a fragment of a sentence about the cluster.
	Why string

	// Again is set when time alone will change the answer: when to ask again.
	Again time.Duration
}

// Selector knows the rule. A ClusterProfile proves nothing by itself, because who
// may create one may give it any label and owner. It answers from caches.
type Selector interface {
	// Selected applies the rule to a pair: the namespace, and as its name the
	// cluster.
	Selected(ctx context.Context, pair types.NamespacedName) (Selection, error)

	// Namespaces returns where there is a ClusterProfile of a cluster's name.
	Namespaces(ctx context.Context, cluster string) ([]string, error)
}
