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
	Kubeconfig string            // admin kubeconfig of the cluster; pods are told its server as the API server's address
	NodeName   string            // name of the Node object, and its host name label
	Images     map[string]string // image reference without tag -> absolute host directory with what is at / in the image; read again at each container start
	Dir        string            // scratch space, emptied at the start: <Dir>/<pod UID>
	LogDir     string            // one file per container, <namespace>_<pod>_<container>.log, appended to over restarts
	PodCIDR    string            // loopback range, such as 127.20.1.0/24: every pod gets an address of its own
	HostsFile  string            // optional: lines that every pod's /etc/hosts has in addition, read at each pod start

	ServiceCIDR string            // loopback range apart from PodCIDR: every Service gets an address of its own; empty leaves Services without
	OwnNetwork  []string          // images, as in Images, whose pods have a network of their own instead of the host's; takes root and a ServiceCIDR
	Outside     []string          // host:port of what pods with a network of their own may reach in the host's, besides the API server; host is a loopback address
	Expose      map[string]string // host:port to listen at on the host -> namespace/name:port of the Service that is reached by it
}

// ServiceHosts is the file in Config.Dir that holds the names and addresses of all Services, as lines of /etc/hosts.
const ServiceHosts = "services"

// shutdownGrace is how long processes have to end when the node ends; enough to give a lease back,
// which the next start would have to wait for.
const shutdownGrace = 2 * time.Second

// podWorkers is how many pods virtual-kubelet handles at a time; no step of ours blocks for long.
const podWorkers = 4

// Init must be called first thing in main, and in TestMain, of a program that calls Run or Check.
func Init() { sandbox.Init() }

// Check says in one line why this user cannot run a node here, or returns nil. It needs Init.
func Check() error { return sandbox.Check() }

// Run is the node. It returns when ctx ends, after every process it started has ended, or earlier
// with the reason why it cannot go on.
func Run(ctx context.Context, cfg Config) error {
	// The controllers must be gone before the workers are ended, so that they start no new one.
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
	services, err := newServices(cfg, client, net.JoinHostPort(env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]), log)
	if err != nil {
		return nil, err
	}
	// Processes of an earlier node died with it; what they left is of no use.
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
	m.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "process-node", Host: m.cfg.NodeName})

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

// startServices returns when pods can reach the Services there are.
func (m *machine) startServices(ctx context.Context, pods *provider) error {
	if m.services == nil {
		return nil
	}
	m.services.pods = pods.list
	return m.services.start(ctx)
}

// waitForAPIServer lets the node be started before its API server is ready.
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

// newPodController returns virtual-kubelet's pod controller and what starts its informer. It
// insists on informers for Secrets, ConfigMaps and Services, which it uses only to resolve
// variables: we do that ourselves, so those are never started.
func (m *machine) newPodController(p *provider) (*vk.PodController, func(<-chan struct{}), error) {
	own := informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", m.cfg.NodeName).String()
	}))
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
