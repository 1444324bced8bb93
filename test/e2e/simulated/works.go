package simulated

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the addon's ManifestWorks in the clusters' namespaces.
const (
	workPrefix = "addon-cluster-inventory-"
	// CleanupWork is the one that delivers the clean-up Job.
	CleanupWork = workPrefix + "pre-delete"
)

// WorkAgents play the work agents of all clusters: they report each ManifestWork of the
// addon as applied and available soon after it is created or changed, and its clean-up Job
// as complete.
type WorkAgents struct {
	hub     client.Client
	changed chan *metav1.PartialObjectMetadata
	// applied is the generation of each work that was last sent to changed.
	applied map[types.UID]int64
}

// NewWorkAgents returns the work agents of that many clusters.
func NewWorkAgents(hub client.Client, clusters int) *WorkAgents {
	return &WorkAgents{
		hub: hub, changed: make(chan *metav1.PartialObjectMetadata, 2*clusters), applied: map[types.UID]int64{},
	}
}

// Follow takes the metadata of a ManifestWork as it is now, and is false for one of others.
// It is never called concurrently.
func (a *WorkAgents) Follow(work *metav1.PartialObjectMetadata) bool {
	if !strings.HasPrefix(work.Name, workPrefix) {
		return false
	}
	if a.applied[work.UID] != work.Generation {
		a.applied[work.UID] = work.Generation
		a.changed <- work
	}
	return true
}

// Run starts the agents, until ctx ends.
func (a *WorkAgents) Run(ctx context.Context) {
	for range workers {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case work := <-a.changed:
					// A work that is not reported stays without a status, as on a slow
					// spoke.
					_ = a.report(ctx, work)
				}
			}
		}()
	}
}

// complete is what a work agent reports of the clean-up Job when it is complete.
const complete = `,"resourceStatus":{"manifests":[{"conditions":[],` +
	`"resourceMeta":{"ordinal":0,"group":"batch","version":"v1","kind":"Job","resource":"jobs",` +
	`"namespace":"open-cluster-management-agent-addon","name":"cluster-inventory-cleanup"},` +
	`"statusFeedback":{"values":[{"name":"JobComplete","fieldValue":{"type":"String","string":"True"}}]}}]}`

func (a *WorkAgents) report(ctx context.Context, work *metav1.PartialObjectMetadata) error {
	const condition = `{"type":%q,"status":"True","reason":"Simulated","message":"",` +
		`"observedGeneration":%d,"lastTransitionTime":%q}`
	now := time.Now().UTC().Format(time.RFC3339)
	resources := ""
	if work.Name == CleanupWork {
		resources = complete
	}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[`+condition+`,`+condition+`]%s}}`,
		workv1.WorkApplied, work.Generation, now, workv1.WorkAvailable, work.Generation, now, resources)
	object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	return a.hub.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
