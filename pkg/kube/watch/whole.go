package watch

import "sigs.k8s.io/controller-runtime/pkg/manager"

// AddWhole adds controllers to a manager that may run already; build builds them with the manager
// that it is given. controller-runtime's builder adds a controller before its sources, so that a
// manager that runs may start it first: it would not wait for sources that must be ready.
func AddWhole(mgr manager.Manager, build func(manager.Manager) error) error {
	later := &collector{Manager: mgr}
	if err := build(later); err != nil {
		return err
	}
	for _, runnable := range later.added {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return nil
}

// collector is a manager that keeps what is added to it.
type collector struct {
	manager.Manager
	added []manager.Runnable
}

// Add implements manager.Manager.
func (c *collector) Add(runnable manager.Runnable) error {
	c.added = append(c.added, runnable)
	return nil
}
