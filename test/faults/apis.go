package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of an API, while the story runs. Their target is the name of the CRD.
const (
	// unserved makes the hub not serve the kind for unservedFor. Its objects stay in etcd.
	unserved proxy.Kind = "unserved"
	// recreated deletes the CRD with all objects and creates it again. Then the objects of others
	// are restored, with their status.
	recreated proxy.Kind = "recreated"
	// recreated10s does so ten seconds after the CRD was gone.
	recreated10s proxy.Kind = "recreated-10s"
)

// ofAPIs are all of them, ofRecreated those that delete the CRD.
var (
	ofAPIs      = append([]proxy.Kind{unserved}, ofRecreated...)
	ofRecreated = []proxy.Kind{recreated, recreated10s}
)

// goneFor is for how long the CRD is gone.
var goneFor = map[proxy.Kind]time.Duration{recreated10s: 10 * time.Second}

const (
	// unservedFor is how long a kind is not served.
	unservedFor = 5 * time.Second
	// apiLimit bounds the wait for the API server to serve a changed CRD.
	apiLimit = time.Minute
)

// api is one whose CRD may come and go while the manager runs.
type api struct {
	crd string
	// matters reports whether objects of the kind matter in a state of a hub.
	matters func(state map[string]string) bool
	// mayGo reports whether the oracles can tell, in a story with this reference, what is wrong
	// after all objects of the kind have gone.
	mayGo func(ref reference) bool
	// ocms is true of a kind with which Open Cluster Management's components take away what depends on it.
	ocms bool
}

const (
	accounts       = "managedserviceaccounts.authentication.open-cluster-management.io"
	configurations = "managedproxyconfigurations.proxy.open-cluster-management.io"
)

func always(reference) bool                { return true }
func never(reference) bool                 { return false }
func inEvery(state map[string]string) bool { return len(state) > 0 }

// isPublished is true of states with what consumers see.
func isPublished(state map[string]string) bool {
	pairs, _ := shown(state)
	return len(pairs) > 0
}

// isReferred is true of states with references, which follow Placements.
func isReferred(state map[string]string) bool {
	for id := range state {
		if strings.HasPrefix(id, references+" ") {
			return true
		}
	}
	return false
}

// profilesMayGo excludes stories that take a profile and create it again, or in which another
// client writes to one: both depend on when the manager has created it again.
func profilesMayGo(ref reference) bool {
	for id, object := range ref.after {
		if strings.HasPrefix(id, profiles+" ") && strings.Contains(object, theirs) {
			return false
		}
	}
	return staysPublished(ref)
}

// staysPublished excludes stories that take what consumers see and create it again.
func staysPublished(ref reference) bool {
	for what := range ref.counts {
		id, isCreated := strings.CutPrefix(what, created+" ")
		if resource, _, _ := strings.Cut(id, " "); isCreated && published[resource] != "" && ref.counts[deleted+" "+id] > 0 {
			return false
		}
	}
	return true
}

// apis are those of a hub.
var apis = []api{
	{crd: profiles, mayGo: profilesMayGo, matters: isPublished},
	{crd: references, mayGo: never, matters: isReferred},
	{crd: accounts, mayGo: always, matters: func(state map[string]string) bool {
		_, copies := shown(state)
		return len(copies) > 0
	}},
	{crd: configurations, mayGo: always, matters: func(state map[string]string) bool {
		for id, object := range state {
			if strings.HasPrefix(id, profiles+" ") && strings.Contains(object, `"accessProviders"`) {
				return true
			}
		}
		return false
	}},
	{crd: clusterGroup("managedclusters"), mayGo: always, matters: inEvery, ocms: true},
	{crd: clusterGroup("managedclustersets"), mayGo: always, matters: inEvery, ocms: true},
	{crd: clusterGroup("managedclustersetbindings"), mayGo: always, matters: inEvery, ocms: true},
	{crd: clusterGroup("placements"), mayGo: always, matters: isReferred, ocms: true},
	{crd: clusterGroup("placementdecisions"), mayGo: always, matters: isReferred, ocms: true},
	{crd: addonGroup("managedclusteraddons"), mayGo: always, matters: inEvery, ocms: true},
	{crd: addonGroup("clustermanagementaddons"), mayGo: always, matters: inEvery, ocms: true},
}

func clusterGroup(kind string) string { return kind + "." + clusterv1.GroupName }
func addonGroup(kind string) string   { return kind + "." + addonv1beta1.GroupName }

// withoutOCMs leaves out the kinds of Open Cluster Management's.
func withoutOCMs(apis []api) []api {
	return slices.DeleteFunc(slices.Clone(apis), func(of api) bool { return of.ocms })
}

// apiPlans are the plans of a story for faults of some APIs and their CRDs.
func apiPlans(name string, ref reference, apis []api) []plan {
	var all []plan
	for _, of := range apis {
		if !of.matters(ref.before) && !of.matters(ref.after) {
			continue
		}
		for _, kind := range slices.Concat(ofAPIs, ofUpdates) {
			if of.mayHave(kind, ref) {
				all = append(all, plan{story: name, fault: proxy.Fault{Kind: kind, Key: proxy.Key{Resource: of.crd}}})
			}
		}
	}
	return all
}

// mayHave reports whether a story with this reference has plans with a fault of the API.
func (of api) mayHave(kind proxy.Kind, ref reference) bool {
	switch {
	case slices.Contains(ofRecreated, kind):
		return of.mayGo(ref)
	case slices.Contains(ofUpdates, kind):
		return slices.Contains(updated, of.crd)
	default:
		return true
	}
}

// gate makes requests for one kind wait. A story's own requests pass it, so that its steps with
// that kind take place when it is served again. It is safe for concurrent use.
type gate struct {
	mu    sync.Mutex
	group string // of the kind whose requests wait
	kind  string // plural
	open  chan struct{}
}

// close makes requests for a kind wait until the returned function is called.
func (g *gate) close(crd string) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.kind, g.group, _ = strings.Cut(crd, ".")
	g.open = opened
	return sync.OnceFunc(func() { close(opened) })
}

// wait returns when requests for a path of the API server may pass.
func (g *gate) wait(ctx context.Context, path string) error {
	g.mu.Lock()
	open, group, kind := g.open, g.group, g.kind
	g.mu.Unlock()
	parts := strings.Split(strings.Trim(path, "/"), "/") // apis, the group, the version
	if open == nil || len(parts) < 2 || parts[1] != group || !slices.Contains(parts[2:], kind) {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// through returns a transport that passes the gate.
func (g *gate) through(next http.RoundTripper) http.RoundTripper {
	return gated{RoundTripper: next, gate: g}
}

type gated struct {
	http.RoundTripper
	gate *gate
}

// RoundTrip implements http.RoundTripper.
func (g gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.gate.wait(r.Context(), r.URL.Path); err != nil {
		return nil, err
	}
	return g.RoundTripper.RoundTrip(r)
}

// unserve plays the story while a kind is not served.
func (r *running) unserve(tb testing.TB, crd string) error {
	tb.Helper()
	by := r.lane.past(tb)
	see := r.lane.sight.close(crd)
	defer see()
	again, err := by.unserve(tb.Context(), crd)
	if err != nil {
		return err
	}
	return r.meanwhile(crd, see, func(ctx context.Context) error {
		return errors.Join(pause(ctx, unservedFor), again(ctx))
	})
}

// recreate plays the story while the CRD of a kind is deleted with all objects and created again.
func (r *running) recreate(tb testing.TB, fault proxy.Fault) error {
	tb.Helper()
	crd := fault.Key.Resource
	by := r.lane.past(tb)
	see := r.lane.sight.close(crd)
	defer see()
	definition, lost, err := by.remove(tb.Context(), crd)
	r.lane.spoiled = true // a manager that starts infers a restore from the age of a CRD
	if err != nil {
		return err
	}
	for _, object := range lost {
		r.lost = append(r.lost, crd+" "+object.GetNamespace()+"/"+object.GetName())
	}
	return r.meanwhile(crd, see, func(ctx context.Context) error {
		err := errors.Join(by.awaitGone(ctx, crd), pause(ctx, goneFor[fault.Kind]), by.recreate(ctx, definition))
		if err != nil {
			return err
		}
		for _, object := range lost {
			// The manager creates its profiles itself, and the agent its claims.
			if published[crd] == "" || isForeign("/"+object.GetName()) {
				err = errors.Join(err, by.restore(ctx, object))
			}
		}
		return err
	})
}

// meanwhile plays the story while a function does something to an API. The story's requests for
// the kind wait until that has ended, and until the watcher, which then sees the kind, has listed it.
func (r *running) meanwhile(crd string, see func(), do func(ctx context.Context) error) (err error) {
	ctx := context.WithoutCancel(r.world.T.Context())
	open := r.lane.gate.close(crd)
	done, by := make(chan error, 1), r.lane.past(r.world.T)
	go func() {
		defer open()
		err := do(ctx)
		see()
		// On a busy machine, its watch may be late, and the oracles need each change.
		seen, cancel := context.WithTimeout(ctx, resetLimit)
		defer cancel()
		for err == nil && !r.lane.hasSeen(seen, by, crd) {
			err = pause(seen, poll)
		}
		done <- err
	}()
	// Also if the story ends the test: the next one needs the API.
	defer func() {
		if failed := <-done; failed != nil {
			r.lane.spoiled, err = true, failed
		}
	}()
	r.story.act(r.world)
	return nil
}

// admin is a client that does not pass the gate.
type admin struct{ client.Client }

// past returns a client of the hub that does not wait for APIs.
func (l *lane) past(tb testing.TB) admin {
	tb.Helper()
	return admin{apitest.NewClient(tb, l.server.Config(tb), ocmtest.Scheme())}
}

// unserve makes the hub serve no version of a kind, and returns a function that makes it serve
// the same ones again. Both return when the API server does so.
func (a admin) unserve(ctx context.Context, name string) (again func(context.Context) error, err error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := a.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, err
	}
	served := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	if err := a.Patch(ctx, crd, client.MergeFrom(served)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		patch := client.MergeFrom(crd.DeepCopy())
		crd.Spec = served.Spec
		if err := a.Patch(ctx, crd, patch); err != nil {
			return err
		}
		return a.await(ctx, crd, true)
	}, a.await(ctx, crd, false)
}

// remove begins to delete a CRD, and returns it with the objects that there were. From now on,
// none can be created.
func (a admin) remove(ctx context.Context, name string) (
	crd *apiextensionsv1.CustomResourceDefinition, lost []unstructured.Unstructured, err error,
) {
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if err := a.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, nil, err
	}
	list, err := a.objects(ctx, crd)
	if err != nil {
		return nil, nil, err
	}
	if err := a.Delete(ctx, crd); err != nil {
		return nil, nil, err
	}
	return crd, list.Items, a.insist(ctx, func(ctx context.Context) error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		err := a.Get(ctx, client.ObjectKey{Name: name}, now)
		if err == nil && !slices.ContainsFunc(now.Status.Conditions, isTerminating) {
			err = errors.New("it is not being deleted yet")
		}
		return client.IgnoreNotFound(err)
	})
}

// isTerminating is true of the condition with which the API server refuses new objects.
func isTerminating(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return condition.Type == apiextensionsv1.Terminating && condition.Status == apiextensionsv1.ConditionTrue
}

// awaitGone waits until a CRD is gone with its objects.
func (a admin) awaitGone(ctx context.Context, name string) error {
	return a.insist(ctx, func(ctx context.Context) error {
		err := a.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if err == nil {
			err = errors.New("it is not gone yet")
		}
		return client.IgnoreNotFound(err)
	})
}

// recreate creates a CRD again once it is gone.
func (a admin) recreate(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	again := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec,
	}
	err := a.insist(ctx, func(ctx context.Context) error { return a.Create(ctx, again.DeepCopy()) })
	if err != nil {
		return err
	}
	return a.await(ctx, again, true)
}

// restore creates an object again, with its status, as a tool for backups does. The Secret of an
// account's token gets the new owner, as managed-serviceaccount's agent gives it.
func (a admin) restore(ctx context.Context, lost unstructured.Unstructured) error {
	lost.SetUID("")
	lost.SetResourceVersion("")
	lost.SetManagedFields(nil)
	status, hasStatus := lost.Object["status"]
	var now *unstructured.Unstructured
	// A CRD is served a moment before its objects can be created.
	err := a.insist(ctx, func(ctx context.Context) error {
		now = lost.DeepCopy()
		return a.Create(ctx, now)
	})
	if err != nil {
		return err
	}
	// An account's status says that there is a token, which must be its own by then.
	if now.GetKind() == "ManagedServiceAccount" {
		if err := a.giveSecret(ctx, now); err != nil {
			return err
		}
	}
	if !hasStatus {
		return nil
	}
	now.Object["status"] = status
	return a.Status().Update(ctx, now)
}

// giveSecret makes an account the owner of the Secret of its name, if there is one.
func (a admin) giveSecret(ctx context.Context, account *unstructured.Unstructured) error {
	secret := &corev1.Secret{}
	if err := a.Get(ctx, client.ObjectKeyFromObject(account), secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	owned := client.MergeFrom(secret.DeepCopy())
	for i := range secret.OwnerReferences {
		secret.OwnerReferences[i].UID = account.GetUID()
	}
	return a.Patch(ctx, secret, owned)
}

// insist calls a function until it succeeds.
func (a admin) insist(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, apiLimit)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, poll) != nil {
			return err
		}
	}
}

// markLost marks, of the objects that went with their CRD, how they went, and how each came again.
func markLost(changes []change, lost []string) {
	went := map[string]*change{}
	for i := range changes {
		c := &changes[i]
		id := c.resource + " " + c.key
		last, isLost := went[id]
		switch {
		case c.what == deleted && !isLost && slices.Contains(lost, id):
			c.lost = true
			went[id] = c
		case c.what == created && isLost && last != nil:
			c.replaced, last.replaced = true, true
			went[id] = nil
		}
	}
}

// await waits until a kind is served, or is not.
func (a admin) await(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, served bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, apiLimit, fmt.Errorf("%s is served: not %t in time", crd.Name, served))
	defer cancel()
	for {
		if _, err := a.objects(ctx, crd); (err == nil) == served && ctx.Err() == nil {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return err
		}
	}
}

// objects are those of a kind.
func (a admin) objects(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	stored := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Storage
	})
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[stored].Name, Kind: crd.Spec.Names.ListKind,
	})
	return list, a.List(ctx, list)
}

// hasSeen reports whether the watcher has seen what there is of a kind: it lists late after the
// kind was not served.
func (l *lane) hasSeen(ctx context.Context, by admin, name string) bool {
	if !slices.ContainsFunc(l.writer.watched, func(kind schema.GroupVersionResource) bool {
		return kind.GroupResource().String() == name
	}) {
		return true
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if by.Get(ctx, client.ObjectKey{Name: name}, crd) != nil {
		return false
	}
	list, err := by.objects(ctx, crd)
	return err == nil && l.watcher.has(name, list.Items)
}
