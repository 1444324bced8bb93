package scale

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
)

// workAgents play the work agents of all clusters: they report each ManifestWork as applied
// and available soon after it is created or changed.
type workAgents struct {
	hub     client.Client
	changed chan *metav1.PartialObjectMetadata
	// applied is the generation of each work that was last sent to changed.
	applied map[types.UID]int64
}

func newWorkAgents(hub client.Client, clusters int) *workAgents {
	return &workAgents{
		hub: hub, changed: make(chan *metav1.PartialObjectMetadata, 2*clusters), applied: map[types.UID]int64{},
	}
}

// follow reads a ManifestWork for the board, and reports it. It is never called
// concurrently.
func (a *workAgents) follow(shown any) (observe.Key, int, bool) {
	object, ok := shown.(*metav1.PartialObjectMetadata)
	if !ok || !strings.HasPrefix(object.Name, "addon-cluster-inventory-") {
		return observe.Key{}, 0, false
	}
	if a.applied[object.UID] != object.Generation {
		a.applied[object.UID] = object.Generation
		a.changed <- object
	}
	return observe.Key{Namespace: object.Namespace, Name: object.Name}, 0, true
}

func (a *workAgents) run(ctx context.Context) {
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

func (a *workAgents) report(ctx context.Context, work *metav1.PartialObjectMetadata) error {
	const condition = `{"type":%q,"status":"True","reason":"Bench","message":"",` +
		`"observedGeneration":%d,"lastTransitionTime":%q}`
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[`+condition+`,`+condition+`]}}`,
		workv1.WorkApplied, work.Generation, now, workv1.WorkAvailable, work.Generation, now)
	object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	return a.hub.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
