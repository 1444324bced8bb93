package upstream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// followed is one object that is watched by name on the elected leader. It is a
// manager.LeaderElectionRunnable.
type followed struct {
	indicator
	key      string // the argument of watch.Follower.Get
	follower *watch.Follower
}

// add makes the manager follow the object of a namespace (none if empty) and name.
func (f *followed) add(mgr manager.Manager, namespace, name string, follow watch.Follow) error {
	c, err := watch.NewWatchClient(mgr)
	if err != nil {
		return err
	}
	f.key = name
	follow.Select = []client.ListOption{client.MatchingFields{metav1.ObjectNameField: name}}
	if namespace != "" {
		f.key = namespace + "/" + name
		follow.Select = append(follow.Select, client.InNamespace(namespace))
	}
	follow.Changed = f.changed
	follow.SkipInitial = true
	follow.Synced = f.notify
	follow.Failed = func(error) { f.notify() }
	f.follower = watch.NewFollower(c, follow)
	return mgr.Add(f)
}

// Start implements manager.Runnable.
func (f *followed) Start(ctx context.Context) error {
	following := make(chan struct{})
	go func() {
		defer close(following)
		f.follower.Run(ctx)
	}()
	err := f.indicator.Start(ctx)
	<-following
	return err
}

// changed notifies of an object that exists. Its absence is announced when it counts.
func (f *followed) changed(_, after client.Object) {
	if after == nil || after.GetDeletionTimestamp() != nil {
		f.object()
		return
	}
	f.notify()
}

// object returns the object that counts, which may be gone by now; nil if it is absent.
// known is false while that is unknown. It must not be called before the follower knows.
func (f *followed) object() (obj client.Object, known bool) { return f.settle(f.follower.Get(f.key)) }
