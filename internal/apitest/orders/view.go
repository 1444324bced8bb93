package orders

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// View reads the present state: the manager's cache, or the hub itself. It serves every CRD but those that
// have been deleted.
type View struct {
	world   *World
	live    bool
	indexes map[string]client.IndexerFunc // by type and name
}

var _ client.Reader = &View{}

func (v *View) of(kind Kind) store {
	if v.live {
		return v.world.now.hub[kind]
	}
	return v.world.now.cached[kind]
}

func kindOf(obj runtime.Object) (kind Kind, known bool) {
	switch obj := obj.(type) {
	case *metav1.PartialObjectMetadata:
		return Namespaces, obj.GroupVersionKind() == kube.NamespaceKind
	case *metav1.PartialObjectMetadataList:
		return Namespaces, true
	case *clusterv1.ManagedCluster, *clusterv1.ManagedClusterList:
		return Clusters, true
	case *addonv1beta1.ManagedClusterAddOn, *addonv1beta1.ManagedClusterAddOnList:
		return Addons, true
	case *clusterv1beta2.ManagedClusterSet, *clusterv1beta2.ManagedClusterSetList:
		return Sets, true
	case *clusterv1beta2.ManagedClusterSetBinding, *clusterv1beta2.ManagedClusterSetBindingList:
		return Bindings, true
	case *clusterv1beta1.Placement, *clusterv1beta1.PlacementList:
		return Placements, true
	case *clusterv1beta1.PlacementDecision, *clusterv1beta1.PlacementDecisionList:
		return Decisions, true
	case *inventoryv1alpha1.ClusterProfile, *inventoryv1alpha1.ClusterProfileList:
		return Profiles, true
	case *authv1beta1.ManagedServiceAccount, *authv1beta1.ManagedServiceAccountList:
		return Accounts, true
	case *corev1.Secret:
		return Copies, true
	case *inventoryv1alpha1.PlacementDecision, *inventoryv1alpha1.PlacementDecisionList:
		return References, true
	case *addonv1beta1.ClusterManagementAddOn, *addonv1beta1.ClusterManagementAddOnList:
		return Installs, true
	default:
		return 0, false
	}
}

// Get implements client.Reader.
func (v *View) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if partial, ok := into.(*metav1.PartialObjectMetadata); ok && partial.GroupVersionKind() == kube.CRDKind {
		if !slices.Contains(v.world.now.definitions, key.Name) {
			partial.Name, partial.UID, partial.CreationTimestamp = key.Name, "of-the-crd", metav1.NewTime(long)
			return nil
		}
		return v.get(Definitions, key, into)
	}
	kind, known := kindOf(into)
	if !known {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
	}
	return v.get(kind, key, into)
}

func (v *View) get(kind Kind, key client.ObjectKey, into client.Object) error {
	obj := v.of(kind)[key]
	if obj == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind.String()}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.Object).Elem())
	return nil
}

// List implements client.Reader.
func (v *View) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if partial, ok := into.(*metav1.PartialObjectMetadataList); ok && partial.Kind != "NamespaceList" {
		return v.listPartially(ctx, partial, opts...)
	}
	kind, known := kindOf(into)
	if !known {
		return nil
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	all := v.of(kind)
	var found []runtime.Object
	for _, key := range all.keys() {
		if obj := all[key].Object; v.selects(options, obj) {
			found = append(found, obj)
		}
	}
	if v.live {
		revision := 0
		for _, version := range v.world.now.versions {
			revision += version
		}
		into.SetResourceVersion(strconv.Itoa(revision))
	}
	return meta.SetList(into, found)
}

// listPartially lists the metadata of profiles. Of CRDs, only the resource version of their list is needed:
// every cache has reached it.
func (v *View) listPartially(
	ctx context.Context, into *metav1.PartialObjectMetadataList, opts ...client.ListOption,
) error {
	if into.Kind != selection.ProfileKind.Kind+"List" {
		into.SetResourceVersion("")
		return nil
	}
	all := &inventoryv1alpha1.ClusterProfileList{}
	if err := v.List(ctx, all, opts...); err != nil {
		return err
	}
	for i := range all.Items {
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: all.Items[i].ObjectMeta})
	}
	return nil
}

func (v *View) selects(options *client.ListOptions, obj client.Object) bool {
	if options.Namespace != "" && obj.GetNamespace() != options.Namespace {
		return false
	}
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if options.FieldSelector == nil {
		return true
	}
	for _, requirement := range options.FieldSelector.Requirements() {
		if requirement.Field == metav1.ObjectNameField {
			if obj.GetName() != requirement.Value {
				return false
			}
			continue
		}
		extract := v.indexes[indexKey(obj, requirement.Field)]
		if extract == nil {
			panic("no index " + requirement.Field)
		}
		if !slices.Contains(extract(obj), requirement.Value) {
			return false
		}
	}
	return true
}

// IndexField records how to find objects.
func (v *View) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	v.indexes[indexKey(obj, field)] = extract
	return nil
}

func indexKey(obj client.Object, field string) string { return fmt.Sprintf("%T %s", obj, field) }

// GetInformer returns an informer whose cache is never older than the process.
func (v *View) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, known := kindOf(of)
	if !known {
		return apitest.SyncedInformer{}, nil
	}
	return informer{view: v, kind: kind}, nil
}

// informer is one of the manager's. It reports objects that are added.
type informer struct {
	apitest.SyncedInformer
	view *View
	kind Kind
}

// GetStore has a resource version later than all others once the cache shows all that is on the hub.
func (i informer) GetStore() toolscache.Store {
	if i.view.world.now.Delivering(i.kind) {
		return apitest.StoreAt("1")
	}
	return apitest.StoreAt("1000000")
}

// AddEventHandler reports what is there, and has deliver report what is added.
func (i informer) AddEventHandler(
	added toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	w := i.view.world
	for _, obj := range w.now.cached[i.kind] {
		added.OnAdd(obj.Object, true)
	}
	if w.Rule == nil { // others only begin what the first one remembers
		w.added[i.kind] = append(w.added[i.kind], added)
	}
	return i.SyncedInformer.AddEventHandler(added)
}
