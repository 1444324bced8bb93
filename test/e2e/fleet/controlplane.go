package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// cluster is one control plane: what it listens on and where its files are.
type cluster struct {
	name string
	dir  string
	kube string // the multi-call binary
	pki  pki
	port struct{ etcd, etcdPeer, apiserver, controllerManager int }
}

// serviceRange is the range of Service addresses; nothing answers on them.
const serviceRange = "10.96.0.0/16"

// What OCM and the addon need of kube-controller-manager. The controllers that
// would judge nodes by their heartbeats are left out.
var (
	spokeControllers = []string{
		"clusterrole-aggregation-controller",
		"deployment-controller",
		"disruption-controller",
		"garbage-collector-controller",
		"job-controller",
		"namespace-controller",
		"replicaset-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"ttl-after-finished-controller",
		"validatingadmissionpolicy-status-controller",
	}
	hubControllers = append([]string{
		"certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller",
	}, spokeControllers...)
)

func (c *cluster) server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.apiserver) }

func (c *cluster) controllers() []string {
	if c.name == HubName {
		return hubControllers
	}
	return spokeControllers
}

// processes of the control plane, in the order in which they need each other.
func (c *cluster) processes() []Process {
	return []Process{{
		Name:  c.name + "/etcd",
		Args:  append([]string{c.kube, "etcd"}, c.etcdFlags()...),
		Tier:  TierStore,
		Probe: fmt.Sprintf("http://127.0.0.1:%d/readyz", c.port.etcd),
	}, {
		Name:  c.name + "/apiserver",
		Args:  append([]string{c.kube, "kube-apiserver"}, c.apiserverFlags()...),
		Tier:  TierServer,
		Probe: c.server() + "/readyz",
	}, {
		Name:  c.name + "/controller-manager",
		Args:  append([]string{c.kube, "kube-controller-manager"}, c.controllerManagerFlags()...),
		Tier:  TierControllers,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", c.port.controllerManager),
	}}
}

func (c *cluster) etcdFlags() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.port.etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.port.etcdPeer)
	return []string{
		"--name=" + c.name,
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.name + "=" + peer,
		"--unsafe-no-fsync", // a fleet's data is thrown away with it
		"--log-level=warn",
	}
}

func (c *cluster) apiserverFlags() []string {
	return []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.port.etcd),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.apiserver),
		"--endpoint-reconciler-type=none", // loopback may not be an endpoint
		"--cert-dir=" + filepath.Join(c.dir, "apiserver"),
		"--tls-cert-file=" + c.pki.file("apiserver.crt"),
		"--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--client-ca-file=" + c.pki.file("ca.crt"),
		"--requestheader-client-ca-file=" + c.pki.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-key-file=" + c.pki.file("sa.pub"),
		"--service-account-signing-key-file=" + c.pki.file("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
	}
}

func (c *cluster) controllerManagerFlags() []string {
	return []string{
		"--kubeconfig=" + c.controllerManagerKubeconfig(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.controllerManager),
		"--cert-dir=" + filepath.Join(c.dir, "controller-manager"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki.file("sa.key"),
		"--root-ca-file=" + c.pki.file("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki.file("ca.crt"),
		"--cluster-signing-key-file=" + c.pki.file("ca.key"),
		"--controllers=" + strings.Join(c.controllers(), ","),
	}
}

func (c *cluster) controllerManagerKubeconfig() string {
	return filepath.Join(c.dir, "controller-manager.kubeconfig")
}

// cluster assembles what is known of a cluster of this fleet.
func (f *Fleet) cluster(name, kube string) *cluster {
	c := &cluster{name: name, dir: f.path(name), kube: kube}
	c.pki = pki{dir: filepath.Join(c.dir, "pki")}
	c.port.etcd = f.state.Ports[name+"/etcd"]
	c.port.etcdPeer = f.state.Ports[name+"/etcd-peer"]
	c.port.apiserver = f.state.Ports[name+"/apiserver"]
	c.port.controllerManager = f.state.Ports[name+"/controller-manager"]
	return c
}

// startControlPlanes brings up every cluster at once, with its node, and returns
// when all API servers and controllers are ready.
func (f *Fleet) startControlPlanes(ctx context.Context, kube string, report *progress) error {
	return each(f.Clusters(), func(name string) error {
		c := f.cluster(name, kube)
		if err := c.pki.write(name); err != nil {
			return err
		}
		if err := c.writeCertKubeconfig(c.controllerManagerKubeconfig(), "controller-manager"); err != nil {
			return err
		}
		if err := c.writeCertKubeconfig(f.Kubeconfig(name), "admin"); err != nil {
			return err
		}
		for _, p := range c.processes() {
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
		report.line("%s: control plane ready at %s", name, c.server())
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
