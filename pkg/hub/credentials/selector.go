package credentials

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// Names of the rule's answers.
type (
	Answer    = selection.Answer
	Selection = selection.Result
)

const (
	Unknown = selection.Unknown
	No      = selection.No
	Yes     = selection.Yes
)

// Selector knows the rule. A ClusterProfile proves nothing by itself, because who
// may create one may give it any label and owner. It answers from caches.
type Selector interface {
	// Selected applies the rule to a pair: the namespace, and as its name the
	// cluster.
	Selected(ctx context.Context, pair types.NamespacedName) (selection.Result, error)

	// Namespaces returns where there is a ClusterProfile of a cluster's name.
	Namespaces(ctx context.Context, cluster string) ([]string, error)
}
