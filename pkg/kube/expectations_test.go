package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestExpectations(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "c"}
	at := func(uid, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version},
		}
	}
	going := at("u", "12")
	going.DeletionTimestamp = &metav1.Time{Time: start}
	wrote := func(e *Expectations) { e.Wrote(at("u", "10"), start) }
	deleted := func(e *Expectations) { e.Deleted(at("u", "10"), start) }
	gone := func(e *Expectations) { e.Gone(at("u", "10"), start) }
	lost := func(e *Expectations) { e.Conflicted(at("u", "10"), start) }

	tests := map[string]struct {
		did    func(*Expectations)
		cached client.Object
		after  time.Duration
		want   time.Duration
		kept   bool // after the wait
	}{
		"nothing written: no wait": {did: func(*Expectations) {}, cached: at("u", "1")},
		"written, the cache is behind: wait": {
			did:    wrote,
			cached: at("u", "9"),
			after:  time.Second,
			want:   4 * time.Second,
		},
		"written, the cache has it":                            {did: wrote, cached: at("u", "10")},
		"written, the cache is ahead":                          {did: wrote, cached: at("u", "11")},
		"created, the cache has none yet: wait":                {did: wrote, want: 5 * time.Second},
		"created, and the cache never has it: not forever":     {did: wrote, after: 5 * time.Second},
		"versions that cannot be compared: no wait":            {did: wrote, cached: at("u", "x")},
		"a conflict, the cache is behind: wait":                {did: lost, cached: at("u", "10"), want: 5 * time.Second},
		"a conflict, the cache has the other write":            {did: lost, cached: at("u", "11")},
		"a conflict, and the object is gone":                   {did: lost},
		"a conflict, and the cache never changes: not forever": {did: lost, cached: at("u", "10"), after: 5 * time.Second},
		"deleted, the cache still has it: wait":                {did: deleted, cached: at("u", "10"), want: 5 * time.Second},
		"deleted, the cache has none":                          {did: deleted},
		"deleted, the cache has another of the name":           {did: deleted, cached: at("v", "13")},
		"deleted, but a finalizer holds it":                    {did: deleted, cached: going},
		"deleted, and the cache never sees it: not forever":    {did: deleted, cached: at("u", "10"), after: 5 * time.Second},
		"found gone, the cache still has it: wait":             {did: gone, cached: at("u", "10"), want: 5 * time.Second},
		"found gone, the cache has none":                       {did: gone},
		"found gone, and the cache never sees it: the next wait is longer": {
			did: gone, cached: at("u", "10"), after: 5 * time.Second, kept: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := &Expectations{}
			test.did(e)
			if got := e.Wait(key, test.cached, start.Add(test.after)); got != test.want {
				t.Errorf("Wait = %s, want %s", got, test.want)
			}
			if test.want == 0 && !test.kept && e.pending.Len() != 0 {
				t.Error("a met expectation must not be kept")
			}
			if e.Wait(key, nil, start.Add(time.Hour)); e.pending.Len() != 0 {
				t.Error("an expectation must not be kept when the cache has no object and the wait is over")
			}
		})
	}
}

func TestWritesOfWhatIsGoneAreTriedLessAndLessOften(t *testing.T) {
	now := time.Unix(100, 0)
	object := func(uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID(uid)}}
	}
	key, e := client.ObjectKeyFromObject(object("u")), &Expectations{}
	tries := func(uid string, within time.Duration) (tried int) {
		for end := now.Add(within); now.Before(end); tried++ {
			e.Gone(object(uid), now)
			for left := e.Wait(key, object(uid), now); left > 0; left = e.Wait(key, object(uid), now) {
				now = now.Add(left)
			}
		}
		return tried
	}
	if got := tries("u", 70*time.Second); got != 4 { // after 5, 15 and 35 seconds
		t.Errorf("%d tries while the cache had what is gone for 70 s", got)
	}
	if got := tries("u", 10*time.Minute); got != 10 {
		t.Errorf("%d tries in the next ten minutes, not one each minute", got)
	}
	e.Deleted(object("v"), now)
	if got := e.Wait(key, object("v"), now); got != StaleAfter {
		t.Errorf("another object of the name waits for %s", got)
	}
	e.Deleted(object("v"), now) // other objects of a controller's key may wait as well
	if got := e.Wait(key, object("v"), now); got != StaleAfter {
		t.Errorf("a second deletion waits for %s", got)
	}
	if e.Wait(key, object("w"), now); e.pending.Len() != 0 {
		t.Error("an expectation that is met must not be kept")
	}
}

func TestExpectationsTellOwnWritesFromOthers(t *testing.T) {
	start := time.Unix(100, 0)
	key := types.NamespacedName{Namespace: "ns", Name: "c"}
	at := func(uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: "10"},
		}
	}
	wrote := func(uid string) func(*Expectations) { return func(e *Expectations) { e.Wrote(at(uid), start) } }
	deleted := func(uid string) func(*Expectations) { return func(e *Expectations) { e.Deleted(at(uid), start) } }
	vanished := func(uid string) func(*Expectations) { return func(e *Expectations) { e.Vanished(at(uid)) } }

	for name, test := range map[string]struct {
		did              []func(*Expectations)
		after            time.Duration
		deleted, awaited bool // of the object u, of any object
	}{
		"nothing happened":             {},
		"written":                      {did: []func(*Expectations){wrote("u")}, awaited: true},
		"written long ago":             {did: []func(*Expectations){wrote("u")}, after: StaleAfter},
		"written, and gone":            {did: []func(*Expectations){wrote("u"), vanished("u")}},
		"written, and another gone":    {did: []func(*Expectations){wrote("u"), vanished("v")}, awaited: true},
		"deleted":                      {did: []func(*Expectations){deleted("u")}, deleted: true},
		"deleted long ago":             {did: []func(*Expectations){deleted("u")}, after: time.Hour, deleted: true},
		"another deleted":              {did: []func(*Expectations){deleted("v")}},
		"deleted, and another written": {did: []func(*Expectations){deleted("u"), wrote("v")}, deleted: true, awaited: true},
		"deleted, and another written, which is gone": {did: []func(*Expectations){deleted("u"), wrote("v"), vanished("v")},
			deleted: true},
		"deleted, and forgotten": {did: []func(*Expectations){
			deleted("u"), func(e *Expectations) { e.Forget(key) }}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Expectations{}
			for _, did := range test.did {
				did(e)
			}
			if got := e.IsDeleted(at("u")); got != test.deleted {
				t.Errorf("IsDeleted = %t, want %t", got, test.deleted)
			}
			if got := e.IsAwaited(key, start.Add(test.after)); got != test.awaited {
				t.Errorf("IsAwaited = %t, want %t", got, test.awaited)
			}
		})
	}
	e := &Expectations{}
	if e.Wrote(at("u"), start); e.Vanished(at("v")) || !e.Vanished(at("u")) || e.Vanished(at("u")) {
		t.Error("Vanished must be true once, for the object that was written")
	}
}
