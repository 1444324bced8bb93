package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/node"
)

// Where clusters are reached through.
const (
	// AccessNamespace is the namespace of cluster-proxy and of
	// managed-serviceaccount on the hub.
	AccessNamespace = "open-cluster-management-addon"
	// UserServer is the host and port of cluster-proxy's user server, by the
	// name that pods of the hub know it by.
	UserServer = "cluster-proxy-addon-user." + AccessNamespace + ":9092"
)

const (
	clusterProxyImage   = "quay.io/open-cluster-management/cluster-proxy"
	serviceAccountImage = "quay.io/open-cluster-management/managed-serviceaccount"
	// proxyEntrypoint is where the agents of the spokes find the proxy server.
	proxyEntrypoint = "hub/proxy-entrypoint"
)

// access is what starting access to clusters takes.
type access struct {
	helm   string
	images map[string]string // to the directory with what is at /
	charts []chart
}

// chart is one that upstream publishes, with the fleet's values.
type chart struct {
	name, dir string
}

// findAccess builds what is missing.
func (f *Fleet) findAccess(ctx context.Context, report *progress) (access, error) {
	helm, err := f.toolPath(ctx, helmTool, report)
	if err != nil {
		return access{}, err
	}
	found := access{helm: helm, images: map[string]string{}}
	for _, part := range []struct {
		tool  tool
		image string
	}{{clusterProxyTool, clusterProxyImage}, {serviceAccountTool, serviceAccountImage}} {
		if found.images[part.image], err = f.toolPath(ctx, part.tool, report); err != nil {
			return access{}, err
		}
		module, err := f.moduleDir(ctx, part.tool, part.tool.module)
		if err != nil {
			return access{}, err
		}
		found.charts = append(found.charts, chart{name: part.tool.name, dir: filepath.Join(module, "charts", part.tool.name)})
	}
	return found, nil
}

// UpstreamPlugin returns the path of upstream's credential plugin cp-creds, as
// managed-serviceaccount publishes it. It is built if needed.
func UpstreamPlugin(ctx context.Context, out io.Writer) (string, error) {
	f, err := locate("plugin")
	if err != nil {
		return "", err
	}
	image, err := f.toolPath(ctx, serviceAccountTool, newProgress(out))
	return filepath.Join(image, "cp-creds"), err
}

// accessNodeFlags let the pods of upstream, which listen on all addresses at fixed ports,
// run side by side, and reach and be reached.
func (f *Fleet) accessNodeFlags(cluster string) []string {
	if !f.state.Access {
		return nil
	}
	flags := []string{"--service-cidr=" + serviceCIDR(f.state.Network, slices.Index(f.Clusters(), cluster))}
	for _, image := range []string{clusterProxyImage, serviceAccountImage} {
		flags = append(flags, "--image="+image+"="+f.access.images[image], "--own-network="+image)
	}
	if cluster == HubName {
		return append(flags, fmt.Sprintf("--expose=%s=%s/proxy-entrypoint:8091", f.entrypoint(), AccessNamespace))
	}
	hub := strings.TrimPrefix(f.cluster(HubName, "").server(), "https://")
	return append(flags, "--outside="+hub, "--outside="+f.entrypoint())
}

func (f *Fleet) entrypoint() string {
	return fmt.Sprintf("127.0.0.1:%d", f.state.Ports[proxyEntrypoint])
}

// accessValues are what the fleet sets in upstream's charts.
func (f *Fleet) accessValues(chart string) []string {
	if chart != clusterProxyTool.name {
		return []string{"featureGates.clusterProfileCredSyncer=false"}
	}
	return []string{
		"enableServiceProxy=true",
		"userServer.enabled=true",
		"featureGates.clusterProfileAccessProvider=false",
		"proxyServer.entrypointAddress=127.0.0.1",
		fmt.Sprintf("proxyServer.port=%d", f.state.Ports[proxyEntrypoint]),
	}
}

// installAccess applies upstream's charts to the hub.
func (f *Fleet) installAccess(ctx context.Context, report *progress) error {
	if !f.state.Access {
		return nil
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	objects := namespaces(AccessNamespace)
	for _, chart := range f.access.charts {
		rendered, err := f.renderChart(ctx, chart)
		if err != nil {
			return err
		}
		objects = append(objects, rendered...)
	}
	// Kinds first: others are of them.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	kinds := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return order(o) > 0 })
	if err := apply(ctx, c, objects[:kinds]...); err != nil {
		return err
	}
	if err := apply(ctx, c, objects[kinds:]...); err != nil {
		return err
	}
	report.line("hub: cluster-proxy and managed-serviceaccount installed in %s", AccessNamespace)
	return nil
}

func order(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition", "Namespace":
		return 0
	default:
		return 1
	}
}

func (f *Fleet) renderChart(ctx context.Context, chart chart) ([]*unstructured.Unstructured, error) {
	args := []string{"template", chart.name, chart.dir, "--namespace", AccessNamespace, "--include-crds"}
	for _, value := range f.accessValues(chart.name) {
		args = append(args, "--set", value)
	}
	var rendered, said bytes.Buffer
	cmd := f.helmCommand(ctx, f.access.helm, args...)
	cmd.Stdout, cmd.Stderr = &rendered, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart of %s: %w: %s", chart.name, err, strings.TrimSpace(said.String()))
	}
	objects, err := decode(&rendered)
	if err != nil {
		return nil, fmt.Errorf("chart of %s: %w", chart.name, err)
	}
	for _, o := range objects {
		if o.GetKind() == "ManagedClusterSetBinding" {
			// It is for upstream's Placement: nobody reads profiles there.
			o.SetLabels(map[string]string{"inventory.open-cluster-management.io/publish": "false"})
		}
		if o.GetKind() == "ManagedProxyConfiguration" {
			// The chart of this release writes what its own kind does not know.
			unstructured.RemoveNestedField(o.Object, "spec", "proxyAgent", "additionalValues")
			unstructured.RemoveNestedField(o.Object, "spec", "proxyServer", "entrypoint", "hostname", "port")
		}
	}
	return objects, nil
}

// waitAccess returns when a request from the hub has been answered by every spoke.
func (f *Fleet) waitAccess(ctx context.Context, report *progress) error {
	if !f.state.Access {
		return nil
	}
	err := each(f.Spokes(), func(spoke string) error {
		if err := f.tryTunnel(ctx, spoke); err != nil {
			return err
		}
		report.line("%s: answers through the tunnel", spoke)
		return nil
	})
	if err != nil {
		f.Diagnose(ctx, report.out)
	}
	return err
}

// trialAccount is the account by which the fleet tries a tunnel; it is gone
// afterwards.
const trialAccount = "fleet-trial"

// tryTunnel does what a user of a cluster does: with the token of an account of the
// spoke it asks the user server for the namespaces of the spoke.
func (f *Fleet) tryTunnel(ctx context.Context, spoke string) (err error) {
	hub, err := f.Client(HubName)
	if err != nil {
		return err
	}
	cluster, err := f.Client(spoke)
	if err != nil {
		return err
	}
	account, rights := trial(spoke)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, client.IgnoreNotFound(hub.Delete(ctx, account)))
		for _, right := range rights {
			err = errors.Join(err, client.IgnoreNotFound(cluster.Delete(ctx, right)))
		}
	}()
	if err := apply(ctx, cluster, rights...); err != nil {
		return err
	}
	if err := apply(ctx, hub, account); err != nil {
		return err
	}
	var token string
	err = wait(ctx, "a token of "+spoke, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		token, err = f.trialToken(ctx, hub, spoke)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return wait(ctx, "the tunnel to "+spoke, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := f.namespacesThroughTunnel(ctx, hub, spoke, token)
		return err == nil, err
	})
}

// trial is an account on the hub and its rights on the spoke.
func trial(spoke string) (account *unstructured.Unstructured, rights []*unstructured.Unstructured) {
	return object(`
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata: {name: %s, namespace: %s}
spec: {rotation: {}}`, trialAccount, spoke), []*unstructured.Unstructured{
			object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [list]}]`, trialAccount),
			object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`, trialAccount, trialAccount, trialAccount, addonNamespace),
		}
}

func (f *Fleet) trialToken(ctx context.Context, hub client.Client, spoke string) (string, error) {
	account, _ := trial(spoke)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return "", err
	}
	name, _, err := unstructured.NestedString(account.Object, "status", "tokenSecretRef", "name")
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", errors.New(addonState(ctx, hub, spoke, serviceAccountTool.name))
	}
	secret := &corev1.Secret{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, secret); err != nil {
		return "", err
	}
	if len(secret.Data["token"]) == 0 {
		return "", fmt.Errorf("secret %s/%s has no token", spoke, name)
	}
	return string(secret.Data["token"]), nil
}

// addonState says in a line what the hub knows of an addon on a cluster.
func addonState(ctx context.Context, hub client.Client, spoke, name string) string {
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, addon); err != nil {
		return err.Error()
	}
	var states []string
	for _, condition := range addon.Status.Conditions {
		states = append(states, fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason))
	}
	return fmt.Sprintf("addon %s on %s: %s", name, spoke, strings.Join(states, ", "))
}

// namespacesThroughTunnel fails unless the spoke itself answers.
func (f *Fleet) namespacesThroughTunnel(ctx context.Context, hub client.Client, spoke, token string) error {
	answer, body, err := f.askUserServer(ctx, hub, spoke, token)
	if err != nil {
		return err
	}
	if answer != http.StatusOK {
		return fmt.Errorf("%d %s; %s", answer, strings.TrimSpace(string(body)), addonState(ctx, hub, spoke, clusterProxyTool.name))
	}
	list := &corev1.NamespaceList{}
	if err := json.Unmarshal(body, list); err != nil {
		return err
	}
	its := &corev1.Namespace{}
	cluster, err := f.Client(spoke)
	if err != nil {
		return err
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, its); err != nil {
		return err
	}
	if !slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.UID == its.UID }) {
		return fmt.Errorf("another cluster answered for %s", spoke)
	}
	return nil
}

// askUserServer asks for the namespaces of a spoke.
func (f *Fleet) askUserServer(ctx context.Context, hub client.Client, spoke, token string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	certificate := &corev1.Secret{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: AccessNamespace, Name: "cluster-proxy-user-serving-cert"}, certificate); err != nil {
		return 0, nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(certificate.Data[corev1.TLSCertKey])
	transport := &http.Transport{
		DialContext: f.ServiceDialer(HubName), DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+UserServer+"/"+spoke+"/api/v1/namespaces", nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// ServiceDialer returns a function that connects a process of this machine to
// Services of a cluster by the names that its pods know, for an http.Transport
// or a rest.Config. Other addresses are dialled as they are.
func (f *Fleet) ServiceDialer(cluster string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		names, err := os.ReadFile(filepath.Join(f.podDir(cluster), node.ServiceHosts))
		if err != nil {
			return nil, fmt.Errorf("the Services of %s have no addresses: %w", cluster, err)
		}
		if found := hostAddress(string(names), host); found != "" {
			host = found
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
	}
}

// hostAddress looks a name up in lines of /etc/hosts.
func hostAddress(hosts, name string) string {
	for line := range strings.Lines(hosts) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], name) {
			return words[0]
		}
	}
	return ""
}

// accessStatus shows the addons of every spoke, and whether it can be reached from the
// hub; it returns how many cannot.
func (f *Fleet) accessStatus(ctx context.Context, line func(format string, args ...any)) (unwell int) {
	if !f.state.Access {
		return 0
	}
	hub, err := f.Client(HubName)
	if err != nil {
		return len(f.Spokes())
	}
	line("")
	line("ACCESS\tCLUSTER-PROXY\tMANAGED-SERVICEACCOUNT\tTUNNEL\tUSER SERVER")
	for _, spoke := range f.Spokes() {
		tunnel := "up"
		if err := f.knock(ctx, hub, spoke); err != nil {
			tunnel = "down: " + err.Error()
			unwell++
		}
		line("%s\t%s\t%s\t%s\thttps://%s/%s", spoke,
			available(ctx, hub, spoke, clusterProxyTool.name), available(ctx, hub, spoke, serviceAccountTool.name), tunnel, UserServer, spoke)
	}
	return unwell
}

// available says whether the hub counts an addon as available. That follows a
// lease and comes up to half a minute late.
func available(ctx context.Context, hub client.Client, spoke, name string) metav1.ConditionStatus {
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, addon); err != nil {
		return metav1.ConditionFalse
	}
	condition := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
	if condition == nil {
		return metav1.ConditionUnknown
	}
	return condition.Status
}

// knock asks a spoke through the tunnel with a token that is none. Whoever refuses it
// is at the other end.
func (f *Fleet) knock(ctx context.Context, hub client.Client, spoke string) error {
	status, body, err := f.askUserServer(ctx, hub, spoke, "none")
	if err == nil && status != http.StatusUnauthorized {
		err = fmt.Errorf("%d %s", status, strings.TrimSpace(string(body)))
	}
	return err
}
