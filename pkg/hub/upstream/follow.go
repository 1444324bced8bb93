package upstream

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// followed is one object that is watched by name on the elected leader, with those
// who want to know of its changes. It is a manager.LeaderElectionRunnable.
type followed struct {
	key      string // as kube.Follower.Get takes it
	follower *kube.Follower

	mu         sync.Mutex
	subscribed []func()
}

// add makes the manager follow the object of a namespace (none if empty) and name.
func (f *followed) add(mgr manager.Manager, namespace, name string, follow kube.Follow) error {
	c, err := kube.NewWatchClient(mgr)
	if err != nil {
		return err
	}
	f.key = name
	follow.Select = []client.ListOption{client.MatchingFields{metav1.ObjectNameField: name}}
	if namespace != "" {
		f.key = namespace + "/" + name
		follow.Select = append(follow.Select, client.InNamespace(namespace))
	}
	follow.Changed = func(_, _ client.Object) { f.notify() }
	follow.SkipInitial = true
	follow.Synced = f.notify
	follow.Failed = func(error) { f.notify() }
	f.follower = kube.NewFollower(c, follow)
	return mgr.Add(f)
}

// Start implements manager.Runnable.
func (f *followed) Start(ctx context.Context) error {
	f.follower.Run(ctx)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f *followed) NeedLeaderElection() bool { return true }

// Subscribe has changed called whenever the answers may have changed. It must
// return at once.
func (f *followed) Subscribe(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribed = append(f.subscribed, changed)
}

func (f *followed) notify() {
	f.mu.Lock()
	subscribed := f.subscribed
	f.mu.Unlock()
	for _, changed := range subscribed {
		changed()
	}
}
