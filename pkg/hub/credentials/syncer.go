package credentials

import (
	"context"
	"fmt"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

// UpstreamSyncerClusterRole is what managed-serviceaccount's chart installs
// exactly when its own syncer of tokens is on, by its gate ClusterProfile, before
// v0.11 ClusterProfileCredSyncer (charts/managed-serviceaccount/templates/clusterrole.yaml).
const UpstreamSyncerClusterRole = "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"

// SyncerOverride is what the administrator says of upstream's syncer.
type SyncerOverride string

const (
	// SyncerAuto leaves it to the evidence.
	SyncerAuto SyncerOverride = "auto"

	// SyncerOff vouches that the syncer is off, for instance because its
	// ClusterRole was left behind.
	SyncerOff SyncerOverride = "off"
)

// syncer tells whether upstream's syncer may be on. Both would write Secrets of
// the same names, and upstream's overwrites what it finds.
type syncer struct {
	client   metadata.Interface
	override SyncerOverride
	informer toolscache.SharedIndexInformer
	synced   atomic.Bool
}

// watch keeps the answer current until the context ends; changed is told when it
// changes.
func (s *syncer) watch(ctx context.Context, changed func()) error {
	if s.override == SyncerOff {
		s.synced.Store(true)
		return nil
	}
	s.informer = metadatainformer.NewFilteredMetadataInformer(s.client, rbacv1.SchemeGroupVersion.WithResource("clusterroles"), metav1.NamespaceAll, 0, toolscache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, UpstreamSyncerClusterRole).String()
	}).Informer()
	handled, err := s.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watching ClusterRole %s: %w", UpstreamSyncerClusterRole, err)
	}
	go s.informer.RunWithContext(ctx)
	if toolscache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
		s.synced.Store(true)
		changed()
	}
	return nil
}

// known is true when the answer is.
func (s *syncer) known() bool { return s.synced.Load() }

// on tells whether the syncer is on.
func (s *syncer) on() bool {
	if s.override == SyncerOff {
		return false
	}
	return len(s.informer.GetStore().ListKeys()) > 0
}
