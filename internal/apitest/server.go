package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	assetsVariable = "KUBEBUILDER_ASSETS"

	// startTimeout is generous because several test binaries start servers at
	// the same time on few cores.
	startTimeout = 3 * time.Minute
)

var errNoAssets = errors.New(assetsVariable +
	` is not set: it names the directory of the etcd and kube-apiserver binaries; run "make test", which sets it`)

// errStopped is why a server that was stopped has no configuration.
var errStopped = errors.New("it has been stopped")

// Server is one API server with its etcd. The zero value is not usable; use New
// or Start.
type Server struct {
	sources []CRDs

	once sync.Once
	env  *envtest.Environment
	dir  string // what outlives a restart: etcd's data and the API server's certificates
	err  error
}

// New declares a server that serves the given resources. It starts when a test
// first asks for its Config.
func New(sources ...CRDs) *Server {
	return &Server{sources: sources}
}

// Start starts a server for one test, and stops it when that test ends.
func Start(tb testing.TB, sources ...CRDs) *Server {
	tb.Helper()
	s := New(sources...)
	tb.Cleanup(func() {
		if err := s.stop(); err != nil {
			tb.Errorf("stop API server: %v", err)
		}
	})
	s.Config(tb)
	return s
}

// Main runs the tests of a package and then stops the servers they started.
// TestMain returns after it, which exits with the tests' result.
func Main(m *testing.M, servers ...*Server) {
	log.SetLogger(logr.Discard()) // what tests should see goes to Logger
	m.Run()
	for _, s := range servers {
		if err := s.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stop API server: %v\n", err)
		}
	}
}

// Config returns a copy of the administrator's configuration, without a client
// side rate limit. It starts the server if it is not running yet, and ends the
// test if that fails.
func (s *Server) Config(tb testing.TB) *rest.Config {
	tb.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		tb.Fatalf("start API server: %v", s.err)
	}
	cfg := rest.CopyConfig(s.env.Config)
	cfg.QPS = -1
	return slowed(tb, cfg)
}

// User returns the configuration of a user of the given name and groups, who
// may do what RBAC in the server says. A service account is the user
// "system:serviceaccount:<namespace>:<name>".
func (s *Server) User(tb testing.TB, name string, groups ...string) *rest.Config {
	tb.Helper()
	s.Config(tb)
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		tb.Fatalf("add user %s: %v", name, err)
	}
	return slowed(tb, rest.CopyConfig(user.Config()))
}

// Install adds resources to a running server and waits until they are served.
func (s *Server) Install(tb testing.TB, sources ...CRDs) {
	tb.Helper()
	cfg := s.Config(tb)
	crds, err := load(sources)
	if err != nil {
		tb.Fatalf("load CRDs: %v", err)
	}
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: crds, MaxTime: startTimeout}); err != nil {
		tb.Fatalf("install CRDs: %v", err)
	}
}

// World returns a world on the server, as its administrator.
func (s *Server) World(tb testing.TB, scheme *runtime.Scheme) *World {
	tb.Helper()
	return NewWorld(tb, s.Config(tb), scheme)
}

// Namespace creates a namespace with a name no other test has and returns the
// name.
func (s *Server) Namespace(tb testing.TB, annotations map[string]string) string {
	tb.Helper()
	return s.World(tb, scheme.Scheme).Namespace("test", annotations)
}

func (s *Server) start() {
	if os.Getenv(assetsVariable) == "" {
		s.err = errNoAssets
		return
	}
	crds, err := load(s.sources)
	if err != nil {
		s.err = err
		return
	}
	if s.dir, s.err = os.MkdirTemp("", "apitest-"); s.err != nil {
		return
	}
	s.env = &envtest.Environment{
		CRDs:                     crds,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTimeout},
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	s.env.ControlPlane.Etcd = &envtest.Etcd{DataDir: s.etcdDir()}
	s.env.ControlPlane.APIServer = &envtest.APIServer{CertDir: s.dir}
	if s.env.ControlPlane.APIServer.Path, s.err = s.recordPid(); s.err != nil {
		return
	}
	if _, err := s.env.Start(); err != nil {
		s.err = errors.Join(err, s.stop())
		return
	}
	s.err = s.ready()
}

// ready waits for the namespaces that a new API server creates by itself, so that
// they do not appear in the middle of a test.
func (s *Server) ready() error {
	c, err := client.New(s.env.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	const every = 50 * time.Millisecond
	ctx := context.Background()
	return wait.PollUntilContextTimeout(ctx, every, startTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

// Stop stops a running server before its test ends. It cannot be used afterward.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.Config(tb)
	Must(tb, errors.Join(s.kill(), s.stop()))
}

func (s *Server) stop() error {
	if s.env == nil {
		return nil
	}
	env := s.env
	s.env, s.err = nil, errStopped
	return errors.Join(env.Stop(), os.RemoveAll(s.dir))
}

func (s *Server) etcdDir() string { return filepath.Join(s.dir, "etcd") }

func load(sources []CRDs) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, source := range sources {
		crds, err := source()
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}
