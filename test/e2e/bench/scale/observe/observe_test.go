package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fcache "k8s.io/client-go/tools/cache/testing"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// clocked is a board whose time is in the test's hand.
func clocked() (*Board, func(seconds int)) {
	board := NewBoard()
	at := time.Unix(0, 0)
	board.now = func() time.Time { return at }
	return board, func(seconds int) { at = time.Unix(int64(seconds), 0) }
}

func in(namespace string, serial int) func(Key, int) bool {
	return func(key Key, shown int) bool { return key.Namespace == namespace && shown >= serial }
}

func TestAWaitEndsWithTheLastObject(t *testing.T) {
	board, clock := clocked()
	board.Saw(Key{"a", "1"}, 0)
	wait := board.Expect(2, in("a", 0))
	clock(5)
	board.Saw(Key{"a", "1"}, 1)
	board.Saw(Key{"b", "2"}, 0)
	board.Saw(Key{"a", "2"}, Incomplete)
	if n := board.Count(in("a", 0)); n != 1 {
		t.Fatalf("%d objects count, want 1", n)
	}
	clock(7)
	board.Saw(Key{"a", "2"}, 0)
	clock(9)
	board.Saw(Key{"a", "3"}, 0)
	if at, err := wait.Until(t.Context()); err != nil || at.Unix() != 7 {
		t.Errorf("got %v, %v: want second 7", at, err)
	}
}

func TestAWaitForNoneEndsWithTheLastDeletion(t *testing.T) {
	board, clock := clocked()
	for _, name := range []string{"1", "2"} {
		board.Saw(Key{"a", name}, 0)
	}
	wait := board.Expect(0, in("a", 0))
	clock(3)
	board.Gone(Key{"a", "1"})
	board.Gone(Key{"a", "never seen"})
	clock(4)
	board.Gone(Key{"a", "2"})
	if at, err := wait.Until(t.Context()); err != nil || at.Unix() != 4 {
		t.Errorf("got %v, %v: want second 4", at, err)
	}
}

func TestAWaitThatIsFulfilledEndsAtOnce(t *testing.T) {
	board, clock := clocked()
	clock(2)
	if at, err := board.Expect(0, in("a", 0)).Until(t.Context()); err != nil || at.Unix() != 2 {
		t.Errorf("got %v, %v: want second 2", at, err)
	}
}

func TestAWaitThatRunsIntoItsBoundTellsHowFarItCame(t *testing.T) {
	board, _ := clocked()
	board.Saw(Key{"a", "1"}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := board.Expect(3, in("a", 0)).Until(ctx)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "1 of 3") {
		t.Errorf("got %v", err)
	}
}

func TestAnEditIsSeenWithItsSerialOrALaterOne(t *testing.T) {
	board, clock := clocked()
	one, two := Key{"a", "1"}, Key{"a", "2"}
	board.Editing(one, 1)
	clock(1)
	board.Editing(one, 2)
	board.Editing(two, 3)
	board.Editing(one, 4)
	clock(5)
	board.Saw(one, 2) // shows both edits, after 5 and 4 seconds
	if pending := board.PendingEdits(); pending != 2 {
		t.Errorf("%d edits pending, want 2", pending)
	}
	seen, lost := board.Edits()
	if diff := cmp.Diff(stats.Sample{5 * time.Second, 4 * time.Second}, seen); diff != "" || lost != 2 {
		t.Errorf("lost %d, seen (-want +got):\n%s", lost, diff)
	}
	if seen, lost := board.Edits(); len(seen) > 0 || lost > 0 {
		t.Errorf("after they were told: %v, %d lost", seen, lost)
	}
}

func TestFollowNotesWhatIsShown(t *testing.T) {
	board := NewBoard()
	object := func(namespace, name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	source := fcache.NewFakeControllerSource()
	source.Add(object("a", "1", nil))
	err := board.Follow(t.Context(), source, &corev1.ConfigMap{}, func(shown any) (Key, int, bool) {
		object := shown.(*corev1.ConfigMap)
		return Key{object.Namespace, object.Name}, len(object.Data), object.Namespace != "other"
	})
	if err != nil {
		t.Fatal(err)
	}
	all := func(Key, int) bool { return true }
	if n := board.Count(all); n != 1 {
		t.Errorf("%d objects after the first list, want 1", n)
	}
	seen := func(what string, wait *Wait) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := wait.Until(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	full := board.Expect(2, in("a", 0))
	source.Add(object("other", "1", nil))
	source.Add(object("a", "2", nil))
	seen("what is created", full)
	edited := board.Expect(1, in("a", 1))
	source.Modify(object("a", "2", map[string]string{"x": ""}))
	seen("what is edited", edited)
	gone := board.Expect(1, all)
	source.Delete(object("a", "1", nil))
	seen("what is deleted", gone)

	// The API server ends watches, of slow readers too; what happened meanwhile is seen.
	missed := board.Expect(0, all)
	other := board.Expect(1, in("b", 0))
	source.DeleteDropWatch(object("a", "2", nil))
	source.AddDropWatch(object("b", "1", nil))
	source.ResetWatch()
	seen("what was deleted while no watch ran", missed)
	seen("what was created while no watch ran", other)
}
