package reach

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Names of the hops, in their order.
const (
	hopName           = "name"
	hopConnection     = "connection"
	hopTLS            = "TLS"
	hopTunnel         = "tunnel"
	hopToken          = "token"
	hopAuthentication = "authentication"
	hopRights         = "rights"
)

// shownBytes is how much of a response is shown.
const shownBytes = 256

// Way is the way to a cluster.
type Way struct {
	Namespace string
	Cluster   string
	Account   string

	// Address is the published one, and Exec the plugin that gives the token.
	Address *clientcmdapi.Cluster
	Exec    *clientcmdapi.ExecConfig
	Stdin   io.Reader // for the plugin's own login to the hub

	// Timeout bounds each request.
	Timeout time.Duration

	// Questions are what the account must be allowed to do.
	Questions []authorizationv1.ResourceAttributes
}

// Check tests the connection, and returns the hops up to the first that fails.
func Check(ctx context.Context, way Way) ([]decide.Finding, error) {
	config, err := way.config()
	if err != nil {
		return nil, err
	}
	hops := way.connect(ctx, config)
	if decide.FirstWrong(hops) != nil {
		return hops, nil
	}
	token, hop := way.token(ctx)
	if hops = append(hops, hop); hop.IsWrong() {
		return hops, nil
	}
	config.BearerToken = token
	hop = way.authenticate(ctx, config)
	if hops = append(hops, hop); hop.IsWrong() {
		return hops, nil
	}
	return append(hops, way.rights(ctx, config)...), nil
}

// config returns what any client makes of the address.
func (w Way) config() (*rest.Config, error) {
	raw := clientcmdapi.NewConfig()
	raw.Clusters["way"] = w.Address
	raw.Contexts["way"] = &clientcmdapi.Context{Cluster: "way"}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "way", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = w.Timeout
	config.Dial = (&net.Dialer{}).DialContext // a separate connection, so that every hop is seen
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// trace is what happened on the way to a response.
type trace struct {
	mu        sync.Mutex
	asked     bool     // a name was looked up
	addresses []string // that it has
	nameErr   error
	connected string // the address
	dialErr   error
	hasTLS    bool
	tlsErr    error
}

func (t *trace) client() *httptrace.ClientTrace {
	locked := func(do func()) { t.mu.Lock(); defer t.mu.Unlock(); do() }
	return &httptrace.ClientTrace{
		DNSDone: func(info httptrace.DNSDoneInfo) {
			locked(func() {
				t.asked, t.nameErr = true, info.Err
				for _, address := range info.Addrs {
					t.addresses = append(t.addresses, address.String())
				}
			})
		},
		ConnectDone: func(_, address string, err error) {
			locked(func() {
				if err == nil {
					t.connected = address
				} else {
					t.dialErr = err
				}
			})
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			locked(func() { t.hasTLS, t.tlsErr = err == nil, err })
		},
	}
}

// connect asks for the cluster's version without a token.
func (w Way) connect(ctx context.Context, config *rest.Config) []decide.Finding {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	t := &trace{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return []decide.Finding{problem(hopConnection, err.Error(), "")}
	}
	address := strings.TrimSuffix(config.Host, "/") + "/version"
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, t.client()), http.MethodGet, address, nil)
	if err != nil {
		return []decide.Finding{problem(hopConnection, err.Error(), "")}
	}
	response, err := client.Do(request)
	status, body := 0, ""
	if err == nil {
		content, _ := io.ReadAll(io.LimitReader(response.Body, shownBytes))
		_ = response.Body.Close()
		status, body = response.StatusCode, string(content)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.hops(t, proxyOf(config, request), request.URL, status, body, err)
}

// proxyOf returns the address of the proxy that a client uses; nil if it uses none.
func proxyOf(config *rest.Config, request *http.Request) *url.URL {
	find := config.Proxy
	if find == nil {
		find = http.ProxyFromEnvironment
	}
	proxy, _ := find(request) // an error fails the request, too
	return proxy
}

// hops returns the hops of the first request, up to the one that fails.
func (w Way) hops(t *trace, proxy, server *url.URL, status int, body string, err error) []decide.Finding {
	host, through := server.Hostname(), ""
	if proxy != nil {
		host, through = proxy.Hostname(), ", through the proxy "+proxy.Host
	}
	var hops []decide.Finding
	switch {
	case t.nameErr != nil:
		return append(hops, problem(hopName, fmt.Sprintf("%s has no address: %s", host, reason(t.nameErr)), hintOfName(host)))
	case t.asked:
		hops = append(hops, ok(hopName, host+" is "+strings.Join(t.addresses, ", ")))
	case t.connected != "" || t.dialErr != nil:
		hops = append(hops, ok(hopName, host+" is an address"))
	}
	if t.connected == "" {
		return append(hops, problem(hopConnection,
			"no connection to "+server.Host+through+": "+reason(cmp.Or(err, t.dialErr)),
			"see whether a firewall is in between, and whether the server runs"))
	}
	if !t.hasTLS && t.tlsErr == nil && err != nil {
		return append(hops, problem(hopConnection, "no connection to "+server.Host+through+": "+reason(err),
			hintOfName(server.Hostname())))
	}
	hops = append(hops, ok(hopConnection, "connected to "+t.connected+through))
	if t.tlsErr != nil {
		return append(hops, problem(hopTLS, "the published CA does not verify "+server.Host+": "+reason(t.tlsErr),
			"the hub publishes the CA of the user server, during a rotation both: kubectl inventory doctor"))
	}
	hops = append(hops, ok(hopTLS, "the published CA verifies "+server.Host))
	switch {
	case err != nil:
		return append(hops, problem(hopTunnel, "no response: "+reason(err), w.hintOfTunnel()))
	case status >= http.StatusInternalServerError || status == http.StatusBadRequest || status == http.StatusNotFound:
		return append(hops, problem(hopTunnel, fmt.Sprintf("the server answers %d: %s", status, body), w.hintOfTunnel()))
	}
	return append(hops, ok(hopTunnel, fmt.Sprintf("the server answers for %s", w.Cluster)))
}

// hintOfName says what to do about a name that this machine does not know. cluster-proxy's user
// server is published by the name of its Service, unless the chart names another address.
func hintOfName(host string) string {
	if strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local") ||
		strings.HasPrefix(host, "cluster-proxy-addon-user.") {
		return "that name resolves only inside the hub: its administrator sets the chart value " +
			"access.clusterProxy.url to an address of the user server that you reach, see " +
			docs.URL("docs/consumers.md#troubleshooting")
	}
	return "ask the hub's administrator whether that address is right, and whether you need a proxy ($HTTPS_PROXY)"
}

func (w Way) hintOfTunnel() string {
	return "cluster-proxy's agent on the cluster may not be connected: kubectl get managedclusteraddon cluster-proxy -n " +
		w.Cluster
}

// reason returns the cause in an error, without the address that errors repeat.
func reason(err error) string {
	if err == nil {
		return "no reason is known"
	}
	if inner, ok := errors.AsType[*net.DNSError](err); ok {
		return inner.Err
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if inner, ok := errors.AsType[*net.OpError](err); ok && inner.Err != nil {
		err = inner.Err
	}
	return kube.Shorten(err.Error(), shownBytes)
}

var ok, problem = decide.OK.Finding, decide.Problem.FixedBy
