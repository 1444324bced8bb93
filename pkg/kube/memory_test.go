package kube_test

import (
	"maps"
	"sync"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	var m kube.Memory[string, int]
	if value, known := m.Load("a"); known || value != 0 {
		t.Errorf("an empty one knows %d, %t", value, known)
	}
	if _, known := m.Set("a", 1); known {
		t.Error("the first value has one before it")
	}
	if before, known := m.Set("a", 2); !known || before != 1 {
		t.Errorf("before the second value: %d, %t", before, known)
	}
	m.Update("b", func(_ int, known bool) (int, bool) { return 5, !known })
	m.Update("a", func(before int, _ bool) (int, bool) { return before + 1, true })
	all := m.All()
	if want := map[string]int{"a": 3, "b": 5}; !maps.Equal(all, want) {
		t.Errorf("it has %v, want %v", all, want)
	}
	all["c"] = 7
	m.Update("b", func(int, bool) (int, bool) { return 0, false })
	if before, known := m.Forget("a"); !known || before != 3 {
		t.Errorf("it forgot %d, %t", before, known)
	}
	m.Set("d", 4)
	m.DeleteFunc(func(key string, value int) bool { return key == "d" && value == 4 })
	if left := m.All(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestMemoryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var m kube.Memory[string, int]
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				m.Update("a", func(before int, _ bool) (int, bool) { return before + 1, true })
				m.Load("a")
			}
		})
	}
	group.Wait()
	if value, _ := m.Load("a"); value != 800 {
		t.Errorf("it counted %d updates, want 800", value)
	}
}
