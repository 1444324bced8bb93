package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ownImage is the probe in an image whose pods have a network of their own.
const ownImage = "example.com/own"

// TestServices proves against a real API server that pods find each other by the names of Services,
// whatever network they are in, and that networks of pods keep apart what listens on all addresses.
func TestServices(t *testing.T) {
	if err := CheckOwnNetworks(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	c := startCluster(t)
	c.images[ownImage] = c.images[probeImage]
	outside := httptest.NewServer(saying("outside"))
	t.Cleanup(outside.Close)
	exposed := net.JoinHostPort("127.0.0.1", freePort(t))
	cfg, stop := c.startNode(t, func(cfg *Config) {
		cfg.PodCIDR, cfg.ServiceCIDR = "127.99.2.0/24", "127.99.129.0/24" // apart from TestNode's
		cfg.OwnNetwork = []string{ownImage}
		cfg.Outside = []string{outside.Listener.Addr().String()}
		cfg.Expose = map[string]string{exposed: "services/web:8080"}
		cfg.ServiceTunnel = filepath.Join(cfg.Dir, "tunnel")
	})
	w := &serviceWorld{cluster: c, cfg: cfg, ns: c.namespace(t, "services")}
	w.service(
		t,
		w.ns,
		"web",
		corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}},
		},
	)
	w.web = w.createOwn(t, "web", func(spec *corev1.PodSpec) {
		spec.Containers[0].LivenessProbe = httpProbe("/healthz")
		// A process that is told to end before it handles signals takes its whole grace period.
		spec.Containers[0].LivenessProbe.InitialDelaySeconds = 3
	})
	w.client = w.createOwn(t, "client")
	c.createPod(t, w.ns, "neighbour", serving("neighbour"))
	w.neighbour = c.readyPod(t, w.ns, "neighbour")

	t.Run("pods that listen on all addresses of the same port do not meet", w.testApart)
	t.Run("a Service is reached by all its names, from every network", w.testNames)
	t.Run("a Service in another namespace needs its namespace", w.testNamespaces)
	t.Run("a Service that comes later is known, one that goes is forgotten", w.testLater)
	t.Run("another name of a Service leads to it", w.testExternalName)
	t.Run("a pod that is not ready gets nothing", w.testReadiness)
	t.Run("a container that is restarted is reached again", w.testRestart)
	t.Run("host aliases", w.testHostAliases)
	t.Run("the API server has its address and its name", w.testAPIServer)
	t.Run("of the host only what is listed can be reached", func(t *testing.T) { w.testOutside(t, outside) })
	t.Run("an exposed Service is reached from the host", func(t *testing.T) { w.testExposed(t, exposed) })
	t.Run("an API server reaches a Service through the tunnel", w.testTunnel)
	t.Run("connections end with their pod", w.testEnd)
	t.Run("nothing is left when the node ends", func(t *testing.T) {
		stop()
		if left := openNetworks(t); len(left) > 0 {
			t.Errorf("networks are left: %v", left)
		}
	})
}

type serviceWorld struct {
	*cluster
	cfg                    Config
	ns                     string
	web, client, neighbour *corev1.Pod
}

func saying(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) })
}

// own is a pod with a network of its own that listens on all addresses.
func own(name string) corev1.PodSpec {
	spec := serving(name)
	spec.Containers[0].Image = ownImage + ":v1"
	spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "LISTEN", Value: ":8080"})
	return spec
}

func (w *serviceWorld) service(t *testing.T, ns, name string, spec corev1.ServiceSpec) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec}
	if _, err := w.cluster.client.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ask makes a pod fetch a URL.
func (w *serviceWorld) ask(pod *corev1.Pod, target string) (string, error) {
	return w.get(pod, "/fetch?url="+url.QueryEscape(target))
}

// get asks the probe of a pod. One with a network of its own is reached through a Service that
// leads to it alone, ready or not.
func (w *serviceWorld) get(pod *corev1.Pod, path string) (string, error) {
	if !strings.HasPrefix(pod.Status.PodIP, "10.244.") {
		return get(pod, path)
	}
	return w.fromHost("http://" + pod.Name + "-direct." + pod.Namespace + ":8080" + path)
}

// fromHost fetches a URL as a process of the host does that knows where the names of Services are written down.
func (w *serviceWorld) fromHost(target string) (string, error) {
	dial := func(ctx context.Context, protocol, address string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if ip := w.addressOf(name); ip != "" {
			name = ip
		}
		return (&net.Dialer{}).DialContext(ctx, protocol, net.JoinHostPort(name, port))
	}
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial},
	}
	response, err := client.Get(target)
	if err != nil {
		return "", err
	}
	defer closeQuietly(response.Body)
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func (w *serviceWorld) addressOf(name string) string {
	names, _ := os.ReadFile(filepath.Join(w.cfg.Dir, ServiceHosts))
	for line := range strings.Lines(string(names)) {
		if words := strings.Fields(line); slices.Contains(words[1:], name) {
			return words[0]
		}
	}
	return ""
}

// createOwn makes a pod with a network of its own, and the Service by which the test reaches it.
func (w *serviceWorld) createOwn(t *testing.T, name string, edits ...func(*corev1.PodSpec)) *corev1.Pod {
	t.Helper()
	spec := own(name)
	for _, edit := range edits {
		edit(&spec)
	}
	w.createPod(t, w.ns, name, spec)
	w.service(
		t,
		w.ns,
		name+"-direct",
		corev1.ServiceSpec{
			Selector:                 map[string]string{"app": name},
			Ports:                    []corev1.ServicePort{{Port: 8080}},
			PublishNotReadyAddresses: true,
		},
	)
	pod := w.readyPod(t, w.ns, name)
	eventually(t, "the pod is reached", func() error {
		_, err := w.get(pod, "/whoami")
		return err
	})
	return pod
}

// hostOf is what a probe says of itself when it runs in the pod.
func hostOf(pod string) string { return "host=" + pod }

// reaches waits till a pod gets the answer, because names are looked up again only after some seconds.
func (w *serviceWorld) reaches(t *testing.T, from *corev1.Pod, target, want string) {
	t.Helper()
	eventually(t, from.Name+" reaches "+target, func() error {
		got, err := w.ask(from, target)
		if err != nil {
			return err
		}
		return wantContains(got, want)
	})
}

func (w *serviceWorld) reachesNot(t *testing.T, from *corev1.Pod, target string) {
	t.Helper()
	eventually(t, from.Name+" does not reach "+target, func() error {
		if got, err := w.ask(from, target); err == nil {
			return fmt.Errorf("it got %q", got)
		}
		return nil
	})
}

func (w *serviceWorld) testApart(t *testing.T) {
	if w.web.Status.PodIP == w.client.Status.PodIP {
		t.Errorf("both have the address %s", w.web.Status.PodIP)
	}
	w.reaches(t, w.client, "http://localhost:8080/whoami", hostOf("client"))
	w.reaches(t, w.web, "http://localhost:8080/whoami", hostOf("web"))
	w.reaches(t, w.client, "http://"+w.web.Status.PodIP+":8080/whoami", hostOf("web"))
}

func (w *serviceWorld) testNames(t *testing.T) {
	for _, from := range []*corev1.Pod{w.client, w.neighbour, w.web} {
		for _, name := range []string{"web", "web." + w.ns, "web." + w.ns + ".svc", "web." + w.ns + ".svc.cluster.local"} {
			w.reaches(t, from, "http://"+name+":8080/whoami", hostOf("web"))
		}
	}
	service, err := w.cluster.client.CoreV1().Services(w.ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.reaches(t, w.client, "http://"+service.Spec.ClusterIP+":8080/whoami", hostOf("web"))
	if got, err := w.fromHost("http://web." + w.ns + ":8080/whoami"); err != nil || !strings.Contains(got, hostOf("web")) {
		t.Errorf("a process of the host got %q, %v", got, err)
	}
}

func (w *serviceWorld) testNamespaces(t *testing.T) {
	other := w.namespace(t, "services-other")
	w.createPod(t, other, "stranger", serving("stranger"))
	stranger := w.readyPod(t, other, "stranger")
	w.reaches(t, stranger, "http://web."+w.ns+":8080/whoami", hostOf("web"))
	if got, err := w.ask(stranger, "http://web:8080/whoami"); err == nil {
		t.Errorf("without it the stranger got %q", got)
	}
}

func (w *serviceWorld) testLater(t *testing.T) {
	w.service(
		t,
		w.ns,
		"later",
		corev1.ServiceSpec{
			Selector: map[string]string{"app": "neighbour"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	)
	for _, from := range []*corev1.Pod{w.client, w.neighbour} {
		w.reaches(t, from, "http://later/whoami", hostOf("neighbour"))
	}
	if err := w.cluster.client.CoreV1().Services(w.ns).Delete(t.Context(), "later", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, from := range []*corev1.Pod{w.client, w.neighbour} {
		w.reachesNot(t, from, "http://later/whoami")
		if hosts, err := w.get(from, "/file?path=/etc/hosts"); err != nil || strings.Contains(hosts, "later") {
			t.Errorf("%s has in /etc/hosts, %v:\n%s", from.Name, err, hosts)
		}
	}
}

func (w *serviceWorld) testExternalName(t *testing.T) {
	w.service(
		t,
		w.ns,
		"alias",
		corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web." + w.ns + ".svc.cluster.local"},
	)
	w.reaches(t, w.client, "http://alias:8080/whoami", hostOf("web"))
	w.reaches(t, w.neighbour, "http://alias:8080/whoami", hostOf("web"))
}

func (w *serviceWorld) testReadiness(t *testing.T) {
	if _, err := w.get(w.web, "/unready"); err != nil {
		t.Fatal(err)
	}
	w.reachesNot(t, w.client, "http://web:8080/whoami")
	if _, err := w.get(w.web, "/ready"); err != nil {
		t.Fatal(err)
	}
	w.reaches(t, w.client, "http://web:8080/whoami", hostOf("web"))
}

func (w *serviceWorld) testRestart(t *testing.T) {
	before := w.pod(t, w.ns, "web").Status.ContainerStatuses[0].RestartCount
	if _, err := w.get(w.web, "/sick"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the container is restarted", func() error {
		if w.pod(t, w.ns, "web").Status.ContainerStatuses[0].RestartCount == before {
			return errors.New("it is not")
		}
		return nil
	})
	w.readyPod(t, w.ns, "web")
	w.reaches(t, w.client, "http://web:8080/whoami", hostOf("web"))
	w.reaches(t, w.web, "http://web:8080/whoami", hostOf("web"))
}

func (w *serviceWorld) testHostAliases(t *testing.T) {
	pod := w.createOwn(t, "aliased", func(spec *corev1.PodSpec) {
		spec.HostAliases = []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{"myself.example.com"}}}
	})
	w.reaches(t, pod, "http://myself.example.com:8080/whoami", hostOf("aliased"))
}

func (w *serviceWorld) testAPIServer(t *testing.T) {
	for _, pod := range []*corev1.Pod{w.client, w.neighbour} {
		if got, err := w.get(pod, "/api?path=/version"); err != nil || !strings.Contains(got, "200 OK") {
			t.Errorf("%s got %q, %v", pod.Name, got, err)
		}
		w.reaches(t, pod, "https://kubernetes.default.svc/version", "gitVersion")
	}
}

func (w *serviceWorld) testOutside(t *testing.T, listed *httptest.Server) {
	w.reaches(t, w.client, listed.URL, "outside")
	other := httptest.NewServer(saying("other"))
	defer other.Close()
	if got, err := w.ask(w.client, other.URL); err == nil {
		t.Errorf("what is not listed says %q", got)
	}
	w.reaches(t, w.neighbour, other.URL, "other")
}

func (w *serviceWorld) testExposed(t *testing.T, address string) {
	got, err := w.fromHost("http://" + address + "/whoami")
	if err != nil || !strings.Contains(got, hostOf("web")) {
		t.Errorf("the host got %q, %v", got, err)
	}
}

func (w *serviceWorld) testEnd(t *testing.T) {
	w.createOwn(t, "ending")
	connection := connect(t, net.JoinHostPort(w.addressOf("ending-direct."+w.ns), "8080"))
	if _, err := io.WriteString(connection, "GET /whoami HTTP/1.1\r\nHost: ending\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	networks := openNetworks(t)
	if err := w.cluster.client.CoreV1().Pods(w.ns).Delete(t.Context(), "ending", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gone(t, w.ns, "ending")
	if _, err := io.Copy(io.Discard, connection); isTimeout(err) {
		t.Error("a connection to the pod outlives it")
	}
	// Other tests may open networks of their own meanwhile, and the node closes one when it has
	// told that the pod is gone.
	eventually(t, "the pod's network is closed", func() error {
		left := openNetworks(t)
		if !slices.ContainsFunc(networks, func(network string) bool { return !slices.Contains(left, network) }) {
			return fmt.Errorf("%v were open with the pod, and %v are without it", networks, left)
		}
		return nil
	})
}

// openNetworks are the network namespaces that this process keeps.
func openNetworks(t *testing.T) []string {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, d := range descriptors {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", d.Name())); err == nil &&
			strings.HasPrefix(target, "net:[") {
			open = append(open, target)
		}
	}
	return open
}

// An API server with the tunnel in its egress selector calls webhooks through it.
func (w *serviceWorld) testTunnel(t *testing.T) {
	address := func(name string) string {
		service, err := w.cluster.client.CoreV1().Services(w.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return net.JoinHostPort(service.Spec.ClusterIP, "8080")
	}
	ask := func(method, address string) (string, net.Conn) {
		connection, err := net.Dial("unix", w.cfg.ServiceTunnel)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeQuietly(connection) })
		if _, err := fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, address); err != nil {
			t.Fatal(err)
		}
		status := ""
		for reader := bufio.NewReader(connection); ; {
			line, err := reader.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "\r\n" {
				return status, connection
			}
			status += line
		}
	}
	status, connection := ask(http.MethodConnect, address("web"))
	if status != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("the answer is %q", status)
	}
	through := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil },
	}}
	answer, err := through.Get("http://web/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(answer.Body)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the Service answers %s", answer.Status)
	}
	for _, wrong := range [][2]string{
		{http.MethodConnect, "10.255.255.1:443"}, {http.MethodConnect, "nonsense"}, {http.MethodGet, "/"},
	} {
		if status, _ := ask(wrong[0], wrong[1]); !strings.HasPrefix(status, "HTTP/1.1 502 ") {
			t.Errorf("%v is answered %q", wrong, status)
		}
	}
}
