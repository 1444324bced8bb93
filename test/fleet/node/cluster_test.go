package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// within bounds everything that is waited for.
const within = time.Minute

// startTimeout is generous because several test binaries start servers at the
// same time on few cores.
const startTimeout = 3 * time.Minute

// kubeBinary names the variable that holds the path of a binary which is etcd, kube-apiserver and
// kube-controller-manager by the name it is called.
const kubeBinary = "FLEET_KUBE_BINARY"

const probeImage = "example.com/probe"

func TestMain(m *testing.M) {
	Init()
	m.Run()
}

// cluster is a control plane with a real API server and real controllers, and what a node in it needs.
type cluster struct {
	client     kubernetes.Interface
	kubeconfig string
	images     map[string]string
	dir        string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	binary, set := os.LookupEnv(kubeBinary)
	if !set {
		t.Fatalf("%s is not set: it must name the multi-call binary that test/fleet/tools/kube builds", kubeBinary)
	}
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.Symlink(binary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    dir,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	startControllers(t, dir, kubeconfig, config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{client: client, kubeconfig: kubeconfig, images: map[string]string{probeImage: buildProbe(t)}, dir: dir}
}

func startControllers(t *testing.T, dir, kubeconfig string, config *rest.Config) {
	t.Helper()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "kube-controller-manager"), "--kubeconfig="+kubeconfig, "--root-ca-file="+ca,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+freePort(t), "--cert-dir="+dir, "--v=0")
	log, err := os.Create(filepath.Join(dir, "kube-controller-manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("kube-controller-manager: %s", tail(log.Name(), 4096))
		}
	})
}

// freePort is below those from which the kernel picks, so that no other process is given it before it is bound.
func freePort(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		port := strconv.Itoa(15000 + rand.N(15000))
		var listener net.Listener
		if listener, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			closeQuietly(listener)
			return port
		}
	}
	t.Fatal(err)
	return ""
}

func buildProbe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
	return dir
}

// startNode runs a node until the returned function is called, which waits for its end.
func (c *cluster) startNode(t *testing.T, edits ...func(*Config)) (Config, func()) {
	t.Helper()
	cfg := Config{
		Kubeconfig: c.kubeconfig, NodeName: "node-1", Images: c.images, PodCIDR: "127.99.1.0/24",
		Dir: filepath.Join(c.dir, "node"), LogDir: filepath.Join(c.dir, "logs"),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	ctx, cancel := context.WithCancel(logrContext(t))
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return cfg, stop
}

// namespace makes a namespace whose default service account and CA are there.
func (c *cluster) namespace(t *testing.T, name string) string {
	t.Helper()
	_, err := c.client.CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has a service account", func() error {
		_, err := c.client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return name
}

func (c *cluster) pod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func (c *cluster) gone(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "pod "+name+" is gone", func() error {
		_, err := c.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("still there")
		}
	})
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // cleanups wait, too
	err := await.Success(ctx, "this: "+what, within, 50*time.Millisecond, func(context.Context) error { return check() })
	if err != nil {
		t.Fatal(err)
	}
}

// get asks the probe that runs in a pod.
func get(pod *corev1.Pod, path string) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + net.JoinHostPort(pod.Status.PodIP, "8080") + path)
	if err != nil {
		return "", err
	}
	defer closeQuietly(response.Body)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), nil
}

func mustGet(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	body, err := get(pod, path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func wantContains(got, want string) error {
	if !strings.Contains(got, want) {
		return fmt.Errorf("got %q, want it to contain %q", got, want)
	}
	return nil
}

// pid reads what the node notes for the test harness.
func pid(t *testing.T, cfg Config, pod *corev1.Pod, container string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cfg.Dir, string(pod.UID), container+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var start uint64
	if _, err := fmt.Sscanf(string(data), "%d %d\n", &pid, &start); err != nil || start == 0 {
		t.Fatalf("pid file holds %q: %v", data, err)
	}
	return pid
}

func dead(pid int) error {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("process %d runs", pid)
}

// ignores returns an error unless a process ignores a signal.
func ignores(pid int, sig syscall.Signal) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	var ignored uint64
	if _, err := fmt.Sscanf(rest, "%x", &ignored); err != nil {
		return fmt.Errorf("the ignored signals of process %d: %w", pid, err)
	}
	if ignored&(1<<(sig-1)) == 0 {
		return fmt.Errorf("process %d ignores only %x", pid, ignored)
	}
	return nil
}

func logrContext(t *testing.T) context.Context {
	return logr.NewContext(t.Context(), testr.New(t))
}
