package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

const (
	// soon bounds every wait; it is long because the machine may be busy.
	soon = time.Minute

	accountNamespace = "open-cluster-management-agent-addon"
	accountName      = "reader"
	workNamespace    = "work"
	team             = "team"
)

// world is a hub and two spokes. Consumers learn about the spokes from the profiles in
// their namespace.
type world struct {
	dir      string
	hub      *server
	spokes   map[string]*server
	user     *rest.Config // with the consumer's rights on the hub
	consumer string       // its kubeconfig
}

type server struct {
	*apitest.World
	config *rest.Config
	user   func(name string) *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	hub := apitest.Start(t, apitest.ClusterProfile())
	w := &world{dir: t.TempDir(), hub: worldOf(t, hub), spokes: map[string]*server{}}
	w.build(t)
	for _, name := range []string{"cluster1", "cluster2"} {
		w.spokes[name] = worldOf(t, apitest.Start(t))
		w.spokes[name].addAccount()
	}
	w.user = w.hub.user("consumer")
	w.addConsumer()
	w.consumer = w.hub.File("consumer.kubeconfig", apitest.Kubeconfig(t, w.user, ""))
	for name := range w.spokes {
		w.publish(t, name)
		w.rotate(t, name)
	}
	return w
}

func worldOf(t *testing.T, s *apitest.Server) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	apitest.Must(t, clientgoscheme.AddToScheme(scheme))
	apitest.Must(t, inventoryv1alpha1.AddToScheme(scheme))
	user := func(name string) *rest.Config { return s.User(t, name) }
	return &server{World: s.World(t, scheme), config: s.Config(t), user: user}
}

// build builds the programs under test.
func (w *world) build(t *testing.T) {
	t.Helper()
	for _, target := range [][2]string{
		{".", "./lister"}, {".", "./reconciler"}, {"../../..", "./cmd/cp-creds"},
		{".", "sigs.k8s.io/cluster-inventory-api/plugins/secretreader/cmd/plugin"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", w.dir+"/", target[1])
		cmd.Dir, cmd.Env = target[0], append(os.Environ(), "CGO_ENABLED=0")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", target[1], err, output)
		}
	}
}

// grant gives a subject, whose user this is, rights in a namespace, or everywhere.
func (s *server) grant(namespace string, user *rest.Config, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	s.T.Helper()
	defer s.EventuallyAllowed(user, true, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0],
	})
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "granted"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	subjects := []rbacv1.Subject{subject}
	if namespace == "" {
		ref.Kind = "ClusterRole"
		s.MustCreate(
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	s.MustCreate(
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

// addAccount creates the account that consumers use on a spoke.
func (s *server) addAccount() {
	s.T.Helper()
	s.MustCreateIn(workNamespace)
	s.MustCreateIn(accountNamespace, newAccount())
	s.grant("", s.user("system:serviceaccount:"+accountNamespace+":"+accountName),
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"list", "watch", "patch"},
		})
}

func newAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountNamespace, Name: accountName}}
}

// addConsumer gives the user on the hub the rights that docs/consumers.md lists.
func (w *world) addConsumer() {
	w.hub.T.Helper()
	w.hub.MustCreateIn(team)
	w.hub.grant(team, w.user, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "consumer"},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{
			APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"},
			Verbs: []string{"get", "list", "watch"},
		})
}

func newProfile(cluster string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: cluster}}
}

// publish creates the profile of a spoke as the manager does, except that it leads to
// the spoke directly.
func (w *world) publish(t *testing.T, cluster string) {
	t.Helper()
	hub, config := w.hub.In(t), w.spokes[cluster].config
	profile := newProfile(cluster)
	profile.Spec.ClusterManager.Name = "open-cluster-management"
	hub.MustCreate(profile)
	apitest.EditStatus(hub, profile, func(profile *inventoryv1alpha1.ClusterProfile) {
		profile.Status.Conditions = []metav1.Condition{{
			Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: metav1.Now(),
		}}
		profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name: "open-cluster-management",
			Cluster: clientcmdv1.Cluster{
				Server: config.Host, CertificateAuthorityData: config.CAData,
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "client.authentication.k8s.io/exec",
					Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"clusterName":%q}`, cluster)},
				}},
			},
		}}
	})
}

// tokenOf is the consumer's copy of the token for a spoke.
func tokenOf(cluster string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: cluster + "-" + accountName}}
}

// rotate copies a new token to the consumer's namespace.
func (w *world) rotate(t *testing.T, cluster string) {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	apitest.Must(t, w.spokes[cluster].SubResource("token").Create(t.Context(), newAccount(), request))
	secret := tokenOf(cluster)
	secret.Data = map[string][]byte{"token": []byte(request.Status.Token)}
	err := w.hub.Update(t.Context(), secret)
	if apierrors.IsNotFound(err) {
		err = w.hub.Create(t.Context(), secret)
	}
	apitest.Must(t, err)
}

// touch changes a profile in a way that does not affect connections, and returns its resource version.
func (w *world) touch(t *testing.T, cluster, value string) string {
	t.Helper()
	profile := newProfile(cluster)
	w.hub.In(t).MustMerge(profile, fmt.Sprintf(`{"metadata":{"labels":{"touched":%q}}}`, value))
	return profile.ResourceVersion
}

// providerFile writes the consumer's own configuration.
func (w *world) providerFile(t *testing.T, more ...string) string {
	t.Helper()
	return w.providersFile(
		t, "open-cluster-management", "cp-creds", append([]string{"--managed-serviceaccount=" + accountName}, more...)...,
	)
}

// providersFile writes a provider file that names an access provider and a plugin.
func (w *world) providersFile(t *testing.T, name, plugin string, args ...string) string {
	t.Helper()
	list, err := json.Marshal(args)
	apitest.Must(t, err)
	return apitest.File(t, "providers.json", fmt.Appendf(nil, `{"providers":[{"name":%q,
		"execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":%q,"args":%s,
		"provideClusterInfo":true,"interactiveMode":"Never"}}]}`,
		name, filepath.Join(w.dir, plugin), list))
}

// command is a program as the consumer runs it.
func (w *world) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(w.dir, program), append(args, "-namespace="+team)...)
	cmd.Env = []string{"KUBECONFIG=" + w.consumer, "NAMESPACE=" + team, "HOME=" + w.dir}
	return cmd
}

// reconcile starts the reconciler and returns a function that asks it for its report.
func (w *world) reconcile(t *testing.T, args ...string) func() status.Report {
	t.Helper()
	// An address of this process's own, so that no other process takes it before it is bound.
	pid := os.Getpid()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 240+pid>>16&7, pid>>8&255, pid&255))
	apitest.Must(t, err)
	address := listener.Addr().String()
	apitest.Must(t, listener.Close())
	cmd := w.command(t, "reconciler", append(args, "-address="+address, "-work-namespace="+workNamespace)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	apitest.Must(t, cmd.Start())
	t.Cleanup(func() {
		err := cmd.Wait() // the test's context has ended
		if t.Failed() {
			t.Logf("the reconciler ended with %v and said:\n%s", err, said.String())
		}
	})
	return func() status.Report {
		t.Helper()
		var report status.Report
		apitest.Within(t, soon, "the reconciler reports", func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			return errors.Join(json.NewDecoder(resp.Body).Decode(&report), resp.Body.Close())
		})
		return report
	}
}

// want creates or changes a ConfigMap for the reconciler.
func (w *world) want(t *testing.T, cluster, value string) {
	t.Helper()
	job := newJob()
	patch := fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"wanted":%q}}`, job.Name, value)
	apply := client.RawPatch(types.ApplyPatchType, patch)
	apitest.Must(t, w.spokes[cluster].Patch(t.Context(), job, apply, client.FieldOwner("test")))
}

func newJob() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: workNamespace, Name: "job"}}
}

// done waits until the reconciler has seen the wanted value.
func (w *world) done(t *testing.T, cluster, value string) {
	t.Helper()
	apitest.Within(t, soon, cluster+" has "+value, func(ctx context.Context) error {
		found := newJob()
		err := w.spokes[cluster].Get(ctx, client.ObjectKeyFromObject(found), found)
		if err == nil && found.Data["seen"] != value {
			err = fmt.Errorf("it has %q", found.Data["seen"])
		}
		return err
	})
}
