package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// clusterDomain is the suffix of a Service's full name.
const clusterDomain = "cluster.local"

// apiService is the Service of the API server. It has no selector, because that is not a pod.
var apiService = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// services implements Services in place of kube-proxy and a DNS server. Every Service has a loopback
// address in the host's network and its cluster address on the switch. The node listens at both and
// forwards a connection to a ready pod that the Service selects. The names are in every pod's
// /etc/hosts.
//
// There are no EndpointSlices, which may not contain loopback addresses. They are not needed: all pods
// run here, so the node knows which are ready.
type services struct {
	log     logr.Logger
	server  string            // host:port of the API server
	outside []string          // host:port that pods with their own network may reach on the host
	exposed map[string]target // by host:port
	hosts   string            // path of the file ServiceHosts
	// tunnelPath is where the tunnel's socket is to be, and tunnel what listens there.
	tunnelPath string
	tunnel     net.Listener
	pods       func() []*worker
	plugs      *podSwitch // nil if no pod has its own network
	forwarder  *forwarder
	informer   cache.SharedIndexInformer
	changed    chan struct{}

	mu        sync.Mutex
	addresses *addresses
	given     map[types.NamespacedName]string
	known     map[types.NamespacedName]*corev1.Service
	members   map[*worker]*network
	onSwitch  map[string]bool // cluster addresses assigned to the switch
	listeners map[*network]map[string]*listening
	said      map[string]string // the last complaint about an address
	turn      int
}

// target is the destination of a connection: a port of a Service, or an address in the host's network.
type target struct {
	service types.NamespacedName
	port    int32
	outside string
}

type listening struct {
	net.Listener
	target target
}

// newServices returns nil if the node has no ServiceCIDR.
func newServices(cfg Config, client kubernetes.Interface, server string, log logr.Logger) (*services, error) {
	if cfg.ServiceCIDR == "" {
		return nil, nil //nolint:nilnil // a node without Services is valid
	}
	pool, err := newAddresses(cfg.ServiceCIDR)
	if err != nil {
		return nil, err
	}
	exposed := map[string]target{}
	for address, port := range cfg.Expose {
		if exposed[address], err = parseTarget(port); err != nil {
			return nil, err
		}
	}
	s := &services{
		log:        log,
		server:     server,
		outside:    append([]string{server}, cfg.Outside...),
		exposed:    exposed,
		hosts:      filepath.Join(cfg.Dir, ServiceHosts),
		tunnelPath: cfg.ServiceTunnel,
		forwarder:  newForwarder(),
		addresses:  pool,
		changed:    make(chan struct{}, 1),
		given:      map[types.NamespacedName]string{},
		known:      map[types.NamespacedName]*corev1.Service{},
		members:    map[*worker]*network{},
		onSwitch:   map[string]bool{},
		said:       map[string]string{},
		listeners:  map[*network]map[string]*listening{hostNetwork: {}},
	}
	if len(cfg.OwnNetwork) > 0 {
		if s.plugs, err = newPodSwitch(); err != nil {
			return nil, err
		}
		s.listeners[s.plugs.network] = map[string]*listening{}
	}
	all := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "services", metav1.NamespaceAll, fields.Everything())
	s.informer = cache.NewSharedIndexInformer(all, &corev1.Service{}, 0, nil)
	return s, nil
}

// parseTarget reads namespace/name:port.
func parseTarget(text string) (target, error) {
	name, port, found := strings.Cut(text, ":")
	namespace, name, named := strings.Cut(name, "/")
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil || !found || !named {
		return target{}, fmt.Errorf("exposed Service %q: want namespace/name:port", text)
	}
	return target{service: types.NamespacedName{Namespace: namespace, Name: name}, port: int32(number)}, nil
}

// start returns once the Services that exist can be reached.
func (s *services) start(ctx context.Context) error {
	if s == nil {
		return nil
	}
	poke := func() { signal(s.changed) }
	handler, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { poke() },
		UpdateFunc: func(any, any) { poke() },
		DeleteFunc: func(any) { poke() },
	})
	if err != nil {
		return err
	}
	go s.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return ctx.Err()
	}
	s.refresh()
	return s.startTunnel()
}

// run follows changes of Services until ctx ends.
func (s *services) run(ctx context.Context) {
	if s == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			s.refresh()
		}
	}
}

// close closes all connections. All pods must have ended.
func (s *services) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	for n := range s.listeners {
		s.listen(n, nil)
	}
	s.mu.Unlock()
	if s.tunnel != nil {
		closeQuietly(s.tunnel)
	}
	s.forwarder.close()
	if s.plugs != nil {
		if err := s.plugs.close(); err != nil {
			s.log.Error(err, "The network of Services stays")
		}
	}
}

// refresh updates addresses, listeners and names to match the Services.
func (s *services) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = map[types.NamespacedName]*corev1.Service{}
	for _, object := range s.informer.GetStore().List() {
		service := object.(*corev1.Service)
		s.known[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}] = service
	}
	s.giveAddresses()
	s.assignClusterAddresses()
	for n := range s.listeners {
		s.listen(n, s.wanted(n))
	}
	for w := range s.members {
		s.tell(w)
	}
	if err := replaceFile(s.hosts, s.names("", hostNetwork)); err != nil {
		s.log.Error(err, "Service names stay as they were")
	}
}

func (s *services) giveAddresses() {
	for name, address := range s.given {
		if service := s.known[name]; service == nil || service.Spec.Type == corev1.ServiceTypeExternalName {
			s.addresses.release(address)
			delete(s.given, name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.known), byName) {
		if s.given[name] != "" || s.known[name].Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		address, err := s.addresses.take("")
		if err != nil {
			s.log.Error(err, "A Service has no address", "namespace", name.Namespace, "service", name.Name)
			continue
		}
		s.given[name] = address
	}
}

// assignClusterAddresses assigns the cluster addresses of all Services to the switch.
func (s *services) assignClusterAddresses() {
	if s.plugs == nil {
		return
	}
	wanted := map[string]bool{}
	for name := range s.known {
		if address := s.clusterAddress(name); address != "" {
			wanted[address] = true
		}
	}
	for address := range s.onSwitch {
		if !wanted[address] {
			s.assign(address, false)
		}
	}
	for address := range wanted {
		if !s.onSwitch[address] {
			s.assign(address, true)
		}
	}
}

func (s *services) assign(address string, present bool) {
	if err := s.plugs.assign(address, present); err != nil {
		s.log.Error(err, "A Service cannot be reached, trying again", "address", address)
		s.again()
		return
	}
	if present {
		s.onSwitch[address] = true
	} else {
		delete(s.onSwitch, address)
	}
}

// again schedules another refresh.
func (s *services) again() { time.AfterFunc(retryPeriod, func() { signal(s.changed) }) }

func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// join makes the Services resolvable and reachable for a pod.
func (s *services) join(w *worker, n *network) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[w] = n
	if n.own() {
		s.listeners[n] = map[string]*listening{}
		s.listen(n, s.wanted(n))
	}
	s.tell(w)
}

// leave closes the connections and the network of the pod at the address.
func (s *services) leave(w *worker, n *network, address string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, w)
	if !n.own() {
		return
	}
	s.listen(n, nil)
	delete(s.listeners, n)
	s.forwarder.cut(n, address)
	if err := s.plugs.unplug(n, address); err != nil {
		w.log.Error(err, "The network of the pod stays")
	}
}

func (s *services) tell(w *worker) {
	if err := w.writeHosts(s.names(w.name.Namespace, s.members[w])); err != nil {
		s.log.Error(err, "A pod does not learn of Services", "namespace", w.name.Namespace, "pod", w.name.Name)
	}
}

// wanted maps the addresses to listen at in a network to their targets.
func (s *services) wanted(n *network) map[string]target {
	wanted := map[string]target{}
	onSwitch := s.plugs != nil && n == s.plugs.network
	if n.own() && !onSwitch {
		for _, address := range s.outside {
			wanted[address] = target{outside: address}
		}
		return wanted
	}
	for name := range s.known {
		address := s.address(name, n)
		if address == "" || onSwitch && !s.onSwitch[address] || s.known[name].Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		for _, port := range s.known[name].Spec.Ports {
			if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
				wanted[net.JoinHostPort(address, strconv.Itoa(int(port.Port)))] = target{service: name, port: port.Port}
			}
		}
	}
	if !onSwitch {
		maps.Copy(wanted, s.exposed)
	}
	return wanted
}

// listen opens and closes listeners in the network as wanted. Existing connections stay open.
func (s *services) listen(n *network, wanted map[string]target) {
	present := s.listeners[n]
	for address, l := range present {
		if wanted[address] != l.target {
			closeQuietly(l)
			delete(present, address)
		}
	}
	for address, to := range wanted {
		if present[address] != nil {
			continue
		}
		listener, err := n.listen(address)
		if err != nil {
			if said := err.Error(); s.said[address] != said {
				s.log.Error(err, "A Service cannot be reached, trying again", "address", address)
				s.said[address] = said
			}
			s.again()
			continue
		}
		delete(s.said, address)
		present[address] = &listening{Listener: listener, target: to}
		s.forwarder.serve(listener, n, func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, to) })
	}
}

// dial connects to a target as it resolves at this moment.
func (s *services) dial(ctx context.Context, to target) (net.Conn, error) {
	address := to.outside
	if to.service == apiService {
		address = s.server
	}
	if address != "" {
		return hostNetwork.dial(ctx, "tcp4", address)
	}
	err := errors.New("no pod is ready")
	for _, e := range s.endpoints(to) {
		connection, failed := e.network.dial(ctx, "tcp4", e.address)
		if failed == nil {
			return connection, nil
		}
		err = failed
	}
	return nil, err
}

// endpoint is a port of a pod, and the network from which to dial it.
type endpoint struct {
	network *network
	address string
}

// endpoints returns the ready pods behind a port of a Service, in round-robin order.
func (s *services) endpoints(to target) []endpoint {
	s.mu.Lock()
	service := s.known[to.service]
	s.turn++
	turn := s.turn
	s.mu.Unlock()
	if service == nil || len(service.Spec.Selector) == 0 {
		return nil
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == to.port })
	if at < 0 {
		return nil
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var found []endpoint
	for _, w := range s.pods() {
		if address, own, ok := w.endpoint(service, selector, service.Spec.Ports[at]); ok {
			found = append(found, endpoint{s.wayTo(own), address})
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b endpoint) int { return cmp.Compare(a.address, b.address) })
	first := turn % len(found)
	return append(found[first:], found[:first]...)
}

// wayTo is the network from which to dial a pod: the switch for pods with their own network.
func (s *services) wayTo(own bool) *network {
	if own {
		return s.plugs.network
	}
	return hostNetwork
}

// names returns the lines of /etc/hosts for a pod of a namespace in a network. The Services of its
// namespace also have their bare names.
func (s *services) names(namespace string, n *network) string {
	var lines strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(s.known), byName) {
		address := s.address(name, n)
		if address == "" {
			continue
		}
		short := name.Name + "." + name.Namespace
		fmt.Fprintf(&lines, "%s %s.svc.%s %s.svc %s", address, short, clusterDomain, short, short)
		if name.Namespace == namespace {
			lines.WriteString(" " + name.Name)
		}
		lines.WriteString("\n")
	}
	return lines.String()
}

// address returns a Service's address for pods in a network. A Service with an external name has the
// address of the Service of that name; names outside the cluster have none.
func (s *services) address(name types.NamespacedName, n *network) string {
	service := s.known[name]
	switch {
	case service == nil:
		return ""
	case service.Spec.Type != corev1.ServiceTypeExternalName && n.own():
		return s.clusterAddress(name)
	case service.Spec.Type != corev1.ServiceTypeExternalName:
		return s.given[name]
	}
	short := strings.TrimSuffix(
		strings.TrimSuffix(strings.TrimSuffix(service.Spec.ExternalName, "."), "."+clusterDomain), ".svc",
	)
	other, namespace, _ := strings.Cut(short, ".")
	target := types.NamespacedName{Namespace: namespace, Name: other}
	if meant := s.known[target]; meant == nil || meant.Spec.Type == corev1.ServiceTypeExternalName {
		return ""
	}
	return s.address(target, n)
}

// clusterAddress is the Service's cluster IP, or empty for a headless one.
func (s *services) clusterAddress(name types.NamespacedName) string {
	if ip := s.known[name].Spec.ClusterIP; ip != corev1.ClusterIPNone {
		return ip
	}
	return ""
}

// replaceFile replaces a file atomically, unless its content is the same.
func replaceFile(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// overwriteFile changes a file in place, because containers that bind-mount it would not see a
// replacement.
func overwriteFile(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // every user of the pod may read it
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Truncate(int64(len(content))), file.Close())
}
