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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	inventoryclient "sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

const (
	// kubeBinary names the variable that holds the path of a binary which is etcd
	// and kube-apiserver by the name it is called.
	kubeBinary = "FLEET_KUBE_BINARY"

	// soon is time enough for a busy machine; tests do not wait for it to pass.
	soon = time.Minute
	// startTimeout is more so, because several test binaries start servers at the same
	// time on few cores.
	startTimeout = 3 * time.Minute
	// every is how often something is looked at that is waited for.
	every = 50 * time.Millisecond

	accountNamespace = "open-cluster-management-agent-addon"
	accountName      = "reader"
	workNamespace    = "work"
	team             = "team"
)

// world is a hub and two spokes, of which consumers know what the profiles in
// their namespace say.
type world struct {
	dir      string
	hub      *server
	spokes   map[string]*server
	consumer string // kubeconfig of a service account of the namespace
}

type server struct {
	config *rest.Config
	client *kubernetes.Clientset
	user   func(name string) []byte // its kubeconfig
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), spokes: map[string]*server{}}
	w.build(t)
	w.hub = w.serve(t, "hub")
	for _, name := range []string{"cluster1", "cluster2"} {
		w.spokes[name] = w.serve(t, name)
		w.spokes[name].addAccount(t)
	}
	w.addConsumer(t)
	for name := range w.spokes {
		w.publish(t, name)
		w.rotate(t, name)
	}
	return w
}

// build builds the programs under test.
func (w *world) build(t *testing.T) {
	t.Helper()
	for _, target := range [][2]string{{".", "./lister"}, {".", "./reconciler"}, {"../../..", "./cmd/cp-creds"}} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", w.dir+"/", target[1])
		cmd.Dir, cmd.Env = target[0], append(os.Environ(), "CGO_ENABLED=0")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", target[1], err, output)
		}
	}
}

func (w *world) serve(t *testing.T, name string) *server {
	t.Helper()
	binary, set := os.LookupEnv(kubeBinary)
	if !set {
		t.Fatalf("%s is not set: it must name the multi-call binary that test/fleet/tools/kube builds", kubeBinary)
	}
	assets := filepath.Join(w.dir, name)
	must(t, os.Mkdir(assets, 0o755))
	for _, program := range []string{"etcd", "kube-apiserver"} {
		must(t, os.Symlink(binary, filepath.Join(assets, program)))
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{filepath.Join(moduleDir(t), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")},
		ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: startTimeout,
	}
	config, err := environment.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	return &server{config: config, client: kubernetes.NewForConfigOrDie(config), user: func(name string) []byte {
		user, err := environment.AddUser(envtest.User{Name: name}, nil)
		must(t, err)
		kubeconfig, err := user.KubeConfig()
		must(t, err)
		return kubeconfig
	}}
}

func moduleDir(t *testing.T) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	must(t, err)
	return strings.TrimSpace(string(output))
}

func (s *server) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// grant gives a subject rights in a namespace, or everywhere.
func (s *server) grant(t *testing.T, namespace string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "granted"}
	rbac := s.client.RbacV1()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: meta.Name}
	if namespace == "" {
		_, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(t, err)
		ref.Kind = "ClusterRole"
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
		must(t, err)
		return
	}
	_, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	ref.Kind = "Role"
	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
	must(t, err)
}

// addAccount makes the account that consumers use on a spoke.
func (s *server) addAccount(t *testing.T) {
	t.Helper()
	s.namespace(t, accountNamespace)
	s.namespace(t, workNamespace)
	_, err := s.client.CoreV1().ServiceAccounts(accountNamespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}, metav1.CreateOptions{})
	must(t, err)
	s.grant(t, "", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "patch"}})
}

// addConsumer makes who runs on the hub, with the rights that
// docs/consumers.md gives it.
func (w *world) addConsumer(t *testing.T) {
	t.Helper()
	w.hub.namespace(t, team)
	w.hub.grant(t, team, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "consumer"},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get", "list", "watch"}})
	w.consumer = filepath.Join(w.dir, "consumer.kubeconfig")
	must(t, os.WriteFile(w.consumer, w.hub.user("consumer"), 0o600))
}

func (w *world) inventory() *inventoryclient.Clientset {
	return inventoryclient.NewForConfigOrDie(w.hub.config)
}

// publish makes the profile of a spoke as the manager does, but that the way in
// is direct.
func (w *world) publish(t *testing.T, cluster string) {
	t.Helper()
	profiles := w.inventory().ApisV1alpha1().ClusterProfiles(team)
	profile, err := profiles.Create(t.Context(), &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: cluster},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
	}, metav1.CreateOptions{})
	must(t, err)
	now := metav1.Now()
	profile.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: now}}
	profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
		Name: "open-cluster-management",
		Cluster: clientcmdv1.Cluster{
			Server: w.spokes[cluster].config.Host, CertificateAuthorityData: w.spokes[cluster].config.CAData,
			Extensions: []clientcmdv1.NamedExtension{{
				Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"clusterName":%q}`, cluster)},
			}},
		},
	}}
	_, err = profiles.UpdateStatus(t.Context(), profile, metav1.UpdateOptions{})
	must(t, err)
}

// rotate copies a new token to the consumer's namespace.
func (w *world) rotate(t *testing.T, cluster string) {
	t.Helper()
	answer, err := w.spokes[cluster].client.CoreV1().ServiceAccounts(accountNamespace).CreateToken(t.Context(), accountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	secrets := w.hub.client.CoreV1().Secrets(team)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cluster + "-" + accountName}, Data: map[string][]byte{"token": []byte(answer.Status.Token)}}
	if _, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	}
	must(t, err)
}

// touch changes a profile in a way that is of no concern to a connection.
func (w *world) touch(t *testing.T, cluster, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"touched":%q}}}`, value)
	_, err := w.inventory().ApisV1alpha1().ClusterProfiles(team).Patch(t.Context(), cluster, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// providerFile writes the consumer's own configuration.
func (w *world) providerFile(t *testing.T, more ...string) string {
	t.Helper()
	args, err := json.Marshal(append([]string{"--managed-serviceaccount=" + accountName}, more...))
	must(t, err)
	path := filepath.Join(t.TempDir(), "providers.json")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"providers":[{"name":"open-cluster-management","execConfig":{
		"apiVersion":"client.authentication.k8s.io/v1","command":%q,"args":%s,"provideClusterInfo":true,"interactiveMode":"Never"}}]}`,
		filepath.Join(w.dir, "cp-creds"), args), 0o600))
	return path
}

// command is a program as the consumer runs it.
func (w *world) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(w.dir, program), append(args, "-namespace="+team)...)
	cmd.Env = []string{"KUBECONFIG=" + w.consumer, "NAMESPACE=" + team, "HOME=" + w.dir}
	return cmd
}

// reconcile starts the reconciler and returns what it tells.
func (w *world) reconcile(t *testing.T, args ...string) func() status.Report {
	t.Helper()
	// This process's own part of loopback: nobody takes the address before it is bound.
	pid := os.Getpid()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 240+pid>>16&7, pid>>8&255, pid&255))
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	cmd := w.command(t, "reconciler", append(args, "-address="+address, "-work-namespace="+workNamespace)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	must(t, cmd.Start())
	t.Cleanup(func() {
		err := cmd.Wait() // the test's context has ended
		if t.Failed() {
			t.Logf("the reconciler ended with %v and said:\n%s", err, said.String())
		}
	})
	return func() status.Report {
		t.Helper()
		var report status.Report
		eventually(t, "the reconciler tells how it goes", func(ctx context.Context) error {
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

// want makes, or changes, a ConfigMap that the reconciler is to bring in order.
func (w *world) want(t *testing.T, cluster, value string) {
	t.Helper()
	maps := w.spokes[cluster].client.CoreV1().ConfigMaps(workNamespace)
	patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"job"},"data":{"wanted":%q}}`, value)
	_, err := maps.Patch(t.Context(), "job", types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "test"})
	must(t, err)
}

// done waits until the reconciler has done what was wanted.
func (w *world) done(t *testing.T, cluster, value string) {
	t.Helper()
	eventually(t, cluster+" has "+value, func(ctx context.Context) error {
		found, err := w.spokes[cluster].client.CoreV1().ConfigMaps(workNamespace).Get(ctx, "job", metav1.GetOptions{})
		if err == nil && found.Data["seen"] != value {
			err = fmt.Errorf("it has %q", found.Data["seen"])
		}
		return err
	})
}

func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(t.Context(), every, soon, true, func(ctx context.Context) (bool, error) {
		if err := ask(ctx); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %s: %v", what, soon, last)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
