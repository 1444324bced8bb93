package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/controlplane"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
)

// controlPlane describes the control plane of a cluster of this fleet.
func (f *Fleet) controlPlane(name, kube string) *controlplane.ControlPlane {
	services := ""
	if f.state.Consumers {
		services = f.serviceTunnel(name)
	}
	audit := ""
	if f.audit != "" {
		audit = filepath.Join(f.audit, f.Name, name+".log")
	}
	return &controlplane.ControlPlane{
		Name: name, Dir: f.path(name), Kube: kube, Signs: name == HubName, SignedFor: f.credentialLifetime,
		Services: services, Audit: audit,
		Ports: controlplane.Ports{
			Etcd:              f.state.Ports[name+"/etcd"],
			EtcdPeer:          f.state.Ports[name+"/etcd-peer"],
			APIServer:         f.state.Ports[name+"/apiserver"],
			ControllerManager: f.state.Ports[name+"/controller-manager"],
		},
	}
}

// server is the URL of a cluster's API server.
func (f *Fleet) server(cluster string) string {
	return f.controlPlane(controlPlaneOf(cluster), "").Server()
}

// hubCertFile is the path of one of the hub's certificates.
func (f *Fleet) hubCertFile(name string) string {
	return f.controlPlane(HubName, "").CertFile(name)
}

// startControlPlanes starts all clusters at once, each with its node, and returns
// when all API servers and controllers are ready.
func (f *Fleet) startControlPlanes(ctx context.Context, kube string, report *progress.Report) error {
	return each(f.Clusters(), func(name string) error {
		c := f.controlPlane(name, kube)
		if err := c.WriteFiles(f.Kubeconfig(name)); err != nil {
			return err
		}
		for _, p := range c.Processes() {
			if err := f.Ensure(ctx, p); err != nil {
				return err
			}
			if err := f.WaitReady(ctx, p.Name); err != nil {
				return err
			}
		}
		if err := f.Ensure(ctx, f.nodeProcess(name)); err != nil {
			return err
		}
		report.Line("%s: control plane ready at %s", name, c.Server())
		return nil
	})
}

// each does the same for several clusters at once and returns the first error.
func each(names []string, do func(name string) error) error {
	errs := make(chan error, len(names))
	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() {
			if err := do(name); err != nil {
				errs <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}
