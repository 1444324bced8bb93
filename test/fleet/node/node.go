package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	vklog "github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/klogv2"
	vk "github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node/sandbox"
)

// Config describes one node.
type Config struct {
	// Kubeconfig is the cluster's admin kubeconfig. Pods use its server as the address
	// of the API server.
	Kubeconfig string

	// NodeName is the name of the Node object, and its host name label.
	NodeName string

	// Images maps image references without a tag to absolute host directories that
	// contain the image's root. It is read at each container start.
	Images map[string]string

	// Dir is scratch space, emptied at the start: <Dir>/<pod UID>.
	Dir string

	// LogDir has one file per container, <namespace>_<pod>_<container>.log, to which
	// restarted containers append.
	LogDir string

	// PodCIDR is a loopback range, such as 127.20.1.0/24, with an address for each pod.
	PodCIDR string

	// HostsFile is optional: its lines are added to every pod's /etc/hosts when the pod
	// starts.
	HostsFile string

	// ServiceCIDR is another loopback range, with an address for each Service; if it is
	// empty, Services have no addresses.
	ServiceCIDR string

	// OwnNetwork lists images, as in Images, whose pods have their own network instead
	// of the host's. It needs root and a ServiceCIDR.
	OwnNetwork []string

	// ServiceTunnel is a socket to listen at, or empty. An API server whose egress selector for the
	// cluster names it, with HTTP's CONNECT, reaches Services at their cluster addresses. Webhooks in
	// pods need that, and a ServiceCIDR.
	ServiceTunnel string

	// Outside lists what pods with their own network may reach on the host besides the
	// API server, as loopback address:port.
	Outside []string

	// Expose maps host:port, at which the node listens on the host, to the
	// namespace/name:port of a Service.
	Expose map[string]string
}

// ServiceHosts is the file in Config.Dir with the names and addresses of all Services, in the format
// of /etc/hosts.
const ServiceHosts = "services"

// shutdownGrace is how long processes have to end when the node ends: enough to release a leader
// election lease, for which the next start would otherwise wait.
const shutdownGrace = 2 * time.Second

// podWorkers is how many pods virtual-kubelet handles at a time; none of our steps blocks for long.
const podWorkers = 4

// Init must be called first thing in main, and in TestMain, of a program that calls Run or Check.
func Init() { sandbox.Init() }

// Check returns why this user cannot run a node here, in one line, or nil. It needs Init.
func Check() error { return sandbox.Check() }

// Run runs the node until ctx ends or an error stops it, and returns when all its processes have ended.
func Run(ctx context.Context, cfg Config) error {
	// The controllers stop before the workers, so that they start no new ones.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newMachine(ctx, cfg)
	if err != nil {
		return fmt.Errorf("node %s: %w", cfg.NodeName, err)
	}
	defer m.launcher.Close()
	if err := m.serve(ctx, cancel); err != nil && ctx.Err() == nil {
		return fmt.Errorf("node %s: %w", cfg.NodeName, err)
	}
	return nil
}

func newMachine(ctx context.Context, cfg Config) (*machine, error) {
	for _, path := range []string{cfg.Dir, cfg.LogDir} {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("want an absolute directory, not %q", path)
		}
	}
	pool, err := newAddresses(cfg.PodCIDR)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "process-node/" + cfg.NodeName
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	env, err := serviceEnvironment(config.Host)
	if err != nil {
		return nil, err
	}
	if len(cfg.OwnNetwork) > 0 && cfg.ServiceCIDR == "" {
		return nil, errors.New("pods with a network of their own can reach nobody without a range for Services")
	}
	log := klog.FromContext(ctx).WithValues("node", cfg.NodeName)
	services, err := newServices(
		cfg, client, net.JoinHostPort(env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]), log,
	)
	if err != nil {
		return nil, err
	}
	// Processes of an earlier node ended with it; their files are useless.
	if err := errors.Join(os.RemoveAll(cfg.Dir), os.MkdirAll(cfg.Dir, 0o750), os.MkdirAll(cfg.LogDir, 0o750)); err != nil {
		return nil, err
	}
	return &machine{
		cfg: cfg, client: client, addresses: pool, env: env,
		launcher: sandbox.NewLauncher(), objects: newObjects(client), services: services,
		log: log,
	}, nil
}

// serviceEnvironment tells in-cluster clients where the API server is.
func serviceEnvironment(server string) (map[string]string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	host, port := u.Hostname(), u.Port()
	if host == "" || port == "" {
		return nil, fmt.Errorf("the kubeconfig's server %q names no host and port", server)
	}
	return map[string]string{
		"KUBERNETES_SERVICE_HOST":       host,
		"KUBERNETES_SERVICE_PORT":       port,
		"KUBERNETES_SERVICE_PORT_HTTPS": port,
		"KUBERNETES_PORT":               "tcp://" + net.JoinHostPort(host, port),
	}, nil
}

// serve runs the controllers until ctx ends or one of them fails, then ends the pods.
func (m *machine) serve(ctx context.Context, cancel context.CancelFunc) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: m.client.CoreV1().Events("")})
	m.recorder = broadcaster.NewRecorder(
		scheme.Scheme, corev1.EventSource{Component: "process-node", Host: m.cfg.NodeName},
	)

	if err := m.waitForAPIServer(ctx); err != nil {
		return err
	}
	pods := newProvider(ctx, m)
	if err := m.startServices(ctx, pods); err != nil {
		return err
	}
	defer m.services.close()
	podController, start, err := m.newPodController(pods)
	if err != nil {
		return err
	}
	nodeController, err := newNodeController(m.client, nodeObject(m.cfg.NodeName, time.Now()))
	if err != nil {
		return err
	}
	b := &binder{client: m.client, node: m.cfg.NodeName, log: m.log}
	ctx = vklog.WithLogger(ctx, klogv2.New(nil))

	var group sync.WaitGroup
	var failed error
	var once sync.Once
	run := func(f func() error) {
		group.Go(func() {
			err := f()
			once.Do(func() { failed = err })
			cancel()
		})
	}
	start(ctx.Done())
	run(func() error { return nodeController.Run(ctx) })
	run(func() error { return podController.Run(ctx, podWorkers) })
	run(func() error { b.run(ctx); return nil })
	if m.services != nil {
		run(func() error { m.services.run(ctx); return nil })
	}
	group.Wait()
	pods.close(shutdownGrace)
	return failed
}

// startServices returns when pods can reach the Services that exist.
func (m *machine) startServices(ctx context.Context, pods *provider) error {
	if m.services == nil {
		return nil
	}
	m.services.pods = pods.list
	return m.services.start(ctx)
}

// waitForAPIServer lets the node start before its API server is ready.
func (m *machine) waitForAPIServer(ctx context.Context) error {
	said := false
	return wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
		_, err := m.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !said && ctx.Err() == nil {
			m.log.Info("Waiting for the API server", "reason", err.Error())
			said = true
		}
		return err == nil, nil
	})
}

// newPodController returns virtual-kubelet's pod controller and a function that starts its informer.
// It also requires informers for Secrets, ConfigMaps and Services, to resolve variables. The node does
// that itself, so those are never started.
func (m *machine) newPodController(p *provider) (*vk.PodController, func(<-chan struct{}), error) {
	onThisNode := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", m.cfg.NodeName).String()
	})
	own := informers.NewSharedInformerFactoryWithOptions(m.client, 0, onThisNode)
	idle := informers.NewSharedInformerFactory(m.client, 0)
	controller, err := vk.NewPodController(vk.PodControllerConfig{
		PodClient:                 m.client.CoreV1(),
		PodInformer:               own.Core().V1().Pods(),
		EventRecorder:             &record.FakeRecorder{}, // without a channel: its events repeat every status change
		Provider:                  p,
		ConfigMapInformer:         idle.Core().V1().ConfigMaps(),
		SecretInformer:            idle.Core().V1().Secrets(),
		ServiceInformer:           idle.Core().V1().Services(),
		SkipDownwardAPIResolution: true,
	})
	return controller, own.Start, err
}
