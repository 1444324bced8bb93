package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// callRecord records the calls of a Follower.
type callRecord struct {
	mu     sync.Mutex
	calls  []string
	synced int
	failed int
}

func (f *callRecord) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

// follow returns what makes a Follower report the ConfigMaps of a namespace.
func (f *callRecord) follow(namespace string) Follow {
	return Follow{
		Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{},
		Select: []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{"follow": "true"}},
		Trim: func(in any) (any, error) {
			if cm, ok := in.(*corev1.ConfigMap); ok {
				cm.Data = map[string]string{"kept": cm.Data["kept"]}
			}
			return in, nil
		},
		Changed: func(before, after client.Object) {
			switch {
			case before == nil:
				f.note("added " + after.GetName())
			case after == nil:
				f.note("deleted " + before.GetName())
			default:
				f.note("changed " + after.GetName())
			}
		},
		Failed: func(error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failed++
		},
		Synced: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.synced++
		},
	}
}

func (f *callRecord) differs(want ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Diff(want, f.calls)
}

func runFollower(t *testing.T, follower *Follower) {
	t.Helper()
	apitest.Run(t, func(ctx context.Context) error {
		follower.Run(ctx)
		return nil
	})
}

func TestFollower(t *testing.T) {
	w := server.World(t, scheme.Scheme)
	ns := w.Namespace("ns", nil)
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"follow": "true"}},
			Data:       map[string]string{"kept": "a", "dropped": "b"},
		}
	}
	other := configMap("other")
	other.Labels = nil
	w.MustCreate(configMap("first"), other)

	t.Run("it reports every change, and the first objects before it has synced", func(t *testing.T) {
		w, heard, quiet := w.In(t), &callRecord{}, &callRecord{}
		c, err := client.NewWithWatch(server.Config(t), client.Options{Scheme: scheme.Scheme})
		apitest.Must(t, err)
		follower := NewFollower(c, heard.follow(ns))
		if got := follower.Unknown(); got != NotReadYet || follower.Stable() || follower.Objects() != nil {
			t.Errorf("before it runs, %q, stable is %t, %v", got, follower.Stable(), follower.Objects())
		}
		runFollower(t, follower)
		skipping := quiet.follow(ns)
		skipping.SkipInitial = true
		runFollower(t, NewFollower(c, skipping))
		for _, one := range []*callRecord{heard, quiet} {
			w.Eventually("it has synced", func() string {
				one.mu.Lock()
				defer one.mu.Unlock()
				return cmp.Diff(1, one.synced)
			})
		}
		if diff := heard.differs("added first"); diff != "" || follower.Unknown() != "" || !follower.Stable() {
			t.Errorf("when it has synced, %q, stable is %t, calls (-want +got):\n%s",
				follower.Unknown(), follower.Stable(), diff)
		}
		second := configMap("second")
		w.MustCreate(second)
		w.Eventually("the second is followed", func() string {
			found, _ := follower.Get(ns + "/second").(*corev1.ConfigMap)
			if found == nil {
				return "it is not there"
			}
			return cmp.Diff(map[string]string{"kept": "a"}, found.Data)
		})
		apitest.Edit(w, second, func(cm *corev1.ConfigMap) { cm.Data["kept"] = "b" })
		w.Eventually("the change is reported", func() string {
			return heard.differs("added first", "added second", "changed second")
		})
		w.MustDelete(second)
		w.Eventually("the deletion is reported", func() string {
			return heard.differs("added first", "added second", "changed second", "deleted second")
		})
		w.Eventually("the other skipped the initial objects", func() string {
			return quiet.differs("added second", "changed second", "deleted second")
		})
		names := map[string]bool{}
		for _, obj := range follower.Objects() {
			names[obj.GetName()] = true
		}
		if got := slices.Collect(maps.Keys(names)); !slices.Equal(got, []string{"first"}) {
			t.Errorf("it knows %v", got)
		}
		if got := follower.Get(ns + "/other"); got != nil {
			t.Errorf("it knows %v, which was not selected", got)
		}
	})

	t.Run("what may not be read is unknown for that reason, until it may", func(t *testing.T) {
		w, heard := w.In(t), &callRecord{}
		user := w.Name("follower")
		c, err := client.NewWithWatch(server.User(t, user), client.Options{Scheme: scheme.Scheme})
		apitest.Must(t, err)
		follower := NewFollower(c, heard.follow(ns))
		runFollower(t, follower)
		const denied = "may not be read by the manager: its rights are missing"
		w.Eventually("it says why", func() string {
			return cmp.Diff([]any{denied, true}, []any{follower.Unknown(), follower.Stable()})
		})
		heard.mu.Lock()
		if heard.failed == 0 || heard.synced > 0 {
			t.Errorf("it reported %d failures, and %d times that all is known", heard.failed, heard.synced)
		}
		heard.mu.Unlock()
		w.MustCreate(
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"},
			}}},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			},
		)
		w.Eventually("it knows", func() string { return follower.Unknown() })
		w.Eventually("it reports", func() string { return heard.differs("added first") })
	})
}

// A nil Follower knows that there are no objects.
func TestNilFollower(t *testing.T) {
	var none *Follower
	if none.Unknown() != "" || !none.Stable() || none.Objects() != nil || none.Get("ns/a") != nil {
		t.Errorf("%q, stable is %t, %v, %v", none.Unknown(), none.Stable(), none.Objects(), none.Get("ns/a"))
	}
}

// verbose records at which verbosity each list is logged.
type verbose struct {
	client.WithWatch
	logsBodies chan bool
}

func (v verbose) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	v.logsBodies <- klog.FromContext(ctx).V(8).Enabled()
	return errors.New("refused")
}

func (v verbose) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	return nil, v.List(ctx, list, opts...)
}

// Annotations may contain a copy of what a Secret holds, so its metadata is not logged, either.
func TestNoBodyThatIsFollowedIsLogged(t *testing.T) {
	asked := verbose{logsBodies: make(chan bool, 1)}
	secret := corev1.SchemeGroupVersion.WithKind("Secret")
	follower := NewFollower(asked, Follow{
		Object: kube.Partial(secret), List: kube.PartialList(secret),
		Changed: func(client.Object, client.Object) {},
	})
	logger := funcr.New(func(string, string) {}, funcr.Options{Verbosity: 10})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follower.Run(ctx)
	}()
	if <-asked.logsBodies {
		t.Error("the body of the list would be logged")
	}
	cancel()
	go func() {
		for range asked.logsBodies { // those that are on their way
		}
	}()
	<-ended
}
