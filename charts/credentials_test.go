package charts

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	managerhub "open-cluster-management.io/cluster-inventory-addon/pkg/hub"
)

const (
	tokenSource = "open-cluster-management:cluster-inventory:token-source"
	tokenTarget = "open-cluster-management:cluster-inventory:token-target"
)

// ofCredentials are the ClusterRoles whose every rule TestRightsOnSecrets knows.
var ofCredentials = []string{tokenSource, tokenTarget, "open-cluster-management:cluster-inventory:credentials"}

// TestRightsOnSecrets holds what is about tokens to exactly this, and to being
// bound nowhere by the chart.
func TestRightsOnSecrets(t *testing.T) {
	rule := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	roles := "rbac.authorization.k8s.io"
	want := map[string][]rbacv1.PolicyRule{
		tokenSource: {rule("", "secrets", nil, "get")},
		tokenTarget: {rule("", "secrets", nil, "get", "list", "watch", "create", "patch", "delete")},
		"open-cluster-management:cluster-inventory:credentials": {
			rule("authentication.open-cluster-management.io", "managedserviceaccounts", nil, "list", "watch"),
			rule(roles, "clusterroles", []string{"open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"}, "list", "watch"),
			rule(roles, "clusterroles", []string{tokenSource, tokenTarget}, "bind"),
			rule(roles, "rolebindings", []string{tokenSource, tokenTarget}, "delete"),
		},
	}
	objects := mustRender(t, "")
	for _, name := range ofCredentials {
		got := manifesttest.Find[rbacv1.ClusterRole](t, objects, "ClusterRole", name)
		if diff := cmp.Diff(want[name], got.Rules); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, object := range objects {
		ref, _, _ := nestedString(object.Object, "roleRef", "name")
		if ref == tokenSource || ref == tokenTarget {
			t.Errorf("%s binds %s", manifesttest.Identify(object), ref)
		}
	}
}

func nestedString(object map[string]any, path ...string) (string, bool, error) {
	for i, name := range path {
		value, ok := object[name]
		if !ok {
			return "", false, nil
		}
		if i == len(path)-1 {
			return fmt.Sprint(value), true, nil
		}
		object, _ = value.(map[string]any)
	}
	return "", false, nil
}

// TestDisabledHasNoRights: nothing of it is left when credentials are off.
func TestDisabledHasNoRights(t *testing.T) {
	for _, object := range mustRender(t, "credentials: {mode: disabled}") {
		if strings.Contains(object.GetName(), "token") || strings.HasSuffix(object.GetName(), ":credentials") || strings.HasPrefix(object.GetKind(), "ValidatingAdmission") {
			t.Errorf("%s is rendered", manifesttest.Identify(object))
		}
	}
}

// policed is a hub with the chart's roles and policies, and the manager's
// identity on it.
type policed struct {
	t       *testing.T
	admin   client.Client
	manager client.Client
}

func newPoliced(t *testing.T, server *apitest.Server) *policed {
	t.Helper()
	admin, err := client.New(server.Config(t), client.Options{Scheme: managerhub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := client.New(server.User(t, serviceAccount), client.Options{Scheme: managerhub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	p := &policed{t: t, admin: admin, manager: manager}
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, object := range mustRender(t, "") {
		if _, hook := object.GetAnnotations()["helm.sh/hook"]; hook {
			continue
		}
		switch object.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			p.create(object)
		}
	}
	return p
}

func (p *policed) create(objects ...client.Object) {
	p.t.Helper()
	for _, object := range objects {
		if err := p.admin.Create(p.t.Context(), object); err != nil {
			p.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

func (p *policed) namespace(name string, in ...client.Object) string {
	p.t.Helper()
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	for _, object := range in {
		object.SetNamespace(name)
		p.create(object)
	}
	return name
}

func own(role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "cluster-inventory-manager"}},
	}
}

// enforced waits until the manager is refused an object in these words. Policies
// reach the API server's admission by watches of its own.
func (p *policed) enforced(object client.Object, words string) {
	p.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(p.t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = p.manager.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		return isRefused(last, words), nil
	})
	if err != nil {
		p.t.Fatalf("creating %T %s/%s: %v, want a refusal by %q", object, object.GetNamespace(), object.GetName(), last, words)
	}
}

// tries returns what the API server says to the manager.
func (p *policed) tries(in string, binding *rbacv1.RoleBinding) error {
	binding = binding.DeepCopy()
	binding.Namespace = in
	return p.manager.Create(p.t.Context(), binding)
}

// may waits until the manager may: so do the parameters of policies.
func (p *policed) may(in string, binding *rbacv1.RoleBinding) {
	p.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(p.t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = p.tries(in, binding)
		return last == nil, nil
	})
	if err != nil {
		p.t.Fatalf("RoleBinding %s in %s: %v", binding.Name, in, last)
	}
}

// isRefused tells whether an error is a refusal in these words. That a policy's
// parameter is missing is not Forbidden but Invalid, though it says so.
func isRefused(err error, words string) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "forbidden") && strings.Contains(err.Error(), words)
}

func binding() client.Object {
	return &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"}}
}

func addonOf() client.Object {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
}

// TestTheManagerMayBindNothingElse asks the API server, as the manager's service
// account, for everything that a stolen token of it could be used for with
// RoleBindings.
func TestTheManagerMayBindNothingElse(t *testing.T) {
	p := newPoliced(t, apitest.Start(t, apitest.Hub(), apitest.ClusterProfile()))
	silent := binding()
	silent.SetLabels(map[string]string{"inventory.open-cluster-management.io/publish": "false"})
	cluster := p.namespace("cluster1", addonOf())
	team := p.namespace("team", binding())
	unpublished := p.namespace("unpublished", silent)
	another := addonOf()
	another.SetName("another")
	foreign := p.namespace("foreign", another)
	plain := p.namespace("plain")
	p.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "empty"}}, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory-agent"}})

	changed := func(b *rbacv1.RoleBinding, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b = b.DeepCopy()
		change(b)
		return b
	}
	rename := func(name string) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Name = name }
	}
	const policy, source, target = "may bind only its agents", "cluster-inventory-token-source", "cluster-inventory-token-target"
	for by, binding := range map[string]*rbacv1.RoleBinding{
		policy: changed(own(tokenTarget), rename("other")), source: own(tokenSource), target: own(tokenTarget),
	} {
		binding.Namespace = plain
		p.enforced(binding, by)
	}

	// What it needs. Once these work, the policies have their parameters.
	p.may(cluster, own(tokenSource))
	p.may(team, own(tokenTarget))
	agents := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory-agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "cluster-inventory-agent"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User",
			Name: "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory"}},
	}
	p.may(cluster, agents)
	var answer error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		answer = p.manager.Get(ctx, client.ObjectKey{Namespace: team, Name: "x"}, &corev1.Secret{})
		return apierrors.IsNotFound(answer), nil
	}); err != nil {
		t.Errorf("the manager cannot read Secrets where it bound itself: %v", answer)
	}

	subject := func(kind, in, name string) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) {
			b.Subjects = []rbacv1.Subject{{Kind: kind, Namespace: in, Name: name}}
			if kind != "ServiceAccount" {
				b.Subjects[0].APIGroup = rbacv1.GroupName
			}
		}
	}
	refused := map[string]struct {
		in      string
		binding *rbacv1.RoleBinding
		by      string
	}{
		"copies where no set is bound":                {plain, own(tokenTarget), target},
		"copies in kube-system":                       {"kube-system", own(tokenTarget), target},
		"copies in a cluster's namespace":             {cluster, own(tokenTarget), target},
		"copies in its own namespace":                 {namespace, own(tokenTarget), target},
		"copies where the bound set is not published": {unpublished, own(tokenTarget), target},
		"tokens where there is no cluster":            {plain, own(tokenSource), source},
		"tokens in kube-system":                       {"kube-system", own(tokenSource), source},
		"tokens in a consumer's namespace":            {team, own(tokenSource), source},
		"tokens where there is another addon":         {foreign, own(tokenSource), source},
		"another name":                                {team, changed(own(tokenTarget), rename("other")), policy},
		// Each where the policy of its name finds its parameter, so that one refuses.
		"copies under the name for tokens": {cluster, changed(own(tokenTarget), rename(tokenSource)), policy},
		"tokens under the name for copies": {team, changed(own(tokenSource), rename(tokenTarget)), policy},
		"somebody else":                    {team, changed(own(tokenTarget), subject("ServiceAccount", team, "cluster-inventory-manager")), policy},
		"another account of its namespace": {team, changed(own(tokenTarget), subject("ServiceAccount", namespace, "default")), policy},
		"everybody":                        {team, changed(own(tokenTarget), subject("Group", "", "system:authenticated")), policy},
		"somebody else beside itself": {team, changed(own(tokenTarget), func(b *rbacv1.RoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: team, Name: "a"})
		}), policy},
		"a Role that gives nothing": {team, changed(own(tokenTarget), func(b *rbacv1.RoleBinding) { b.RoleRef.Kind, b.RoleRef.Name = "Role", "empty" }), policy},
		"an agent of another cluster": {cluster, changed(agents, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Name = strings.ReplaceAll(b.Subjects[0].Name, cluster, "cluster2")
		}), policy},
		"an agent's user, to read tokens":            {cluster, changed(own(tokenSource), func(b *rbacv1.RoleBinding) { b.Subjects = agents.Subjects }), policy},
		"the agent's name, for the role that copies": {team, changed(own(tokenTarget), rename("cluster-inventory-agent")), policy},
		"the ClusterRole admin":                      {team, changed(own(tokenTarget), func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "admin" }), ""},
	}
	for name, attempt := range refused {
		t.Run(name, func(t *testing.T) {
			err := p.tries(attempt.in, attempt.binding)
			if !isRefused(err, attempt.by) {
				t.Errorf("the manager is told %v, want a refusal by %q", err, attempt.by)
			}
		})
	}
	t.Run("changing one it made", func(t *testing.T) {
		made := own(tokenTarget)
		made.Namespace = team
		err := p.manager.Patch(t.Context(), made, client.RawPatch("application/merge-patch+json", []byte(`{"subjects":[{"kind":"ServiceAccount","namespace":"team","name":"a"}]}`)))
		if !isRefused(err, policy) {
			t.Errorf("the manager is told %v", err)
		}
	})
	t.Run("everywhere at once", func(t *testing.T) {
		err := p.manager.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: own(tokenTarget).RoleRef, Subjects: own(tokenTarget).Subjects,
		})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the manager is told %v", err)
		}
	})
	t.Run("nobody else is held to it", func(*testing.T) {
		theirs := own("view")
		theirs.Namespace, theirs.Name = plain, "theirs"
		p.create(theirs)
	})
}

// TestPoliciesWaitForTheirParameters: a chart installed before the kinds that the
// policies ask for refuses, and works once they are there.
func TestPoliciesWaitForTheirParameters(t *testing.T) {
	server := apitest.Start(t)
	p := newPoliced(t, server)
	plain := p.namespace("plain")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		err := p.tries(plain, own(tokenTarget))
		return err != nil && strings.Contains(err.Error(), "cluster-inventory-token-target"), nil
	})
	if err != nil {
		t.Fatalf("the policy never refused: %v", p.tries(plain, own(tokenTarget)))
	}
	server.Install(t, apitest.Hub(), apitest.ClusterProfile())
	p.may(p.namespace("team", binding()), own(tokenTarget))
	if err := p.tries(p.namespace("other"), own(tokenTarget)); !isRefused(err, "cluster-inventory-token-target") {
		t.Errorf("a namespace without binding: %v", err)
	}
}

// fleet is a hub on which the whole manager runs, with the rights and under the
// policies of the chart.
type fleet struct {
	*policed
	server  *apitest.Server
	program string // path
	config  string // path
	said    bytes.Buffer
	token   string
	stop    func()
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())
	f := &fleet{policed: newPoliced(t, server), server: server, program: filepath.Join(t.TempDir(), "manager"), stop: func() {}}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", f.program, "../cmd/manager").CombinedOutput(); err != nil {
		t.Fatalf("building the manager: %v: %s", err, out)
	}
	f.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get"}}},
	})
	for _, object := range mustRender(t, "") {
		if object.GetKind() == "ClusterManagementAddOn" {
			f.create(object)
		}
	}
	f.config = filepath.Join(t.TempDir(), "kubeconfig")
	user := server.User(t, serviceAccount)
	file := clientcmdapi.NewConfig()
	file.Clusters["hub"] = &clientcmdapi.Cluster{Server: user.Host, CertificateAuthorityData: user.CAData}
	file.AuthInfos["manager"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}
	file.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "manager"}
	file.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*file, f.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop() })
	return f
}

// start runs the manager's program in place of the one that runs, which is killed.
func (f *fleet) start(args ...string) {
	f.t.Helper()
	f.stop()
	cmd := exec.CommandContext(context.WithoutCancel(f.t.Context()), f.program, append([]string{
		"--kubeconfig=" + f.config, "--agent-image=example.com/inventory:v1", "--leader-elect=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "-v=10",
		"--credentials-service-account=" + namespace + "/cluster-inventory-manager",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &f.said, &f.said
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.stop = func() {
		f.stop = func() {}
		if err := cmd.Process.Kill(); err != nil {
			f.t.Errorf("the manager has ended by itself: %v", err)
		}
		_ = cmd.Wait() // it was killed
	}
}

// join makes a cluster of the set that has the addon, and an account there that is
// to be copied to the namespaces.
func (f *fleet) join(name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	f.t.Helper()
	f.create(
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s"}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
	)
	f.namespace(name, addonOf())
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: "reader",
		Labels:      map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
		Annotations: map[string]string{"inventory.open-cluster-management.io/sync-to-namespaces": strings.Join(targets, ",")},
	}}
	c := f.accounts()
	if err := c.Create(f.t.Context(), account); err != nil {
		f.t.Fatal(err)
	}
	signature := make([]byte, 48)
	if _, err := rand.Read(signature); err != nil {
		f.t.Fatal(err)
	}
	claims := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(time.Hour).Unix())))
	f.token = "eyJhbGciOiJSUzI1NiJ9." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "reader",
			Labels:          map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount", Name: "reader", UID: account.UID}},
		},
		Data: map[string][]byte{"token": []byte(f.token), "ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"})},
	})
	account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: "reader", LastRefreshTimestamp: metav1.Now()}
	account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Hour)))
	if err := c.SubResource("status").Update(f.t.Context(), account); err != nil {
		f.t.Fatal(err)
	}
	return account
}

func (f *fleet) accounts() client.Client {
	f.t.Helper()
	scheme := managerhub.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		f.t.Fatal(err)
	}
	c, err := client.New(f.server.Config(f.t), client.Options{Scheme: scheme})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// bind binds the set into a namespace, as OCM would find it bound.
func (f *fleet) bind(in string) *clusterv1beta2.ManagedClusterSetBinding {
	f.t.Helper()
	bound := binding().(*clusterv1beta2.ManagedClusterSetBinding)
	bound.Namespace = in
	f.create(bound)
	bound.Status.Conditions = []metav1.Condition{{Type: "Bound", Status: "True", Reason: "Test", LastTransitionTime: metav1.Now()}}
	if err := f.admin.SubResource("status").Update(f.t.Context(), bound); err != nil {
		f.t.Fatal(err)
	}
	return bound
}

// expect waits until objects are there or not.
func (f *fleet) expect(want bool, what client.Object, in, name string) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := f.admin.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, what)
		return (err == nil) == want, client.IgnoreNotFound(err)
	})
	if err != nil {
		addon := &addonv1beta1.ManagedClusterAddOn{}
		_ = f.admin.Get(f.t.Context(), client.ObjectKey{Namespace: "cluster1", Name: "cluster-inventory"}, addon)
		f.t.Fatalf("%T %s/%s: not so after %s, want it there: %t; conditions: %+v", what, in, name, patience, want, addon.Status.Conditions)
	}
}

// gone waits until nothing of copying is left in two namespaces.
func (f *fleet) gone(team, cluster string) {
	f.t.Helper()
	f.expect(false, &corev1.Secret{}, team, cluster+"-reader")
	f.expect(false, &rbacv1.RoleBinding{}, team, tokenTarget)
	f.expect(false, &rbacv1.RoleBinding{}, cluster, tokenSource)
}

// TestTokensUnderTheChartsRightsAndPolicies runs the manager as installed: real
// rule, real rights, real policies.
func TestTokensUnderTheChartsRightsAndPolicies(t *testing.T) {
	f := newFleet(t)
	f.create(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: clusterv1beta2.ManagedClusterSetSpec{
		ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
	}})
	team, unbound := f.namespace("team"), f.namespace("unbound")
	f.start()
	bound := f.bind(team)
	f.join("cluster1", team, unbound)
	f.expect(true, &corev1.Secret{}, team, "cluster1-reader")
	f.expect(true, &inventoryv1alpha1.ClusterProfile{}, team, "cluster1")

	// A tenant forges what our manager makes, where no set is bound.
	forged := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: unbound, Name: "cluster1", Finalizers: []string{"example.com/hold"}, Labels: map[string]string{
			"app.kubernetes.io/managed-by": "cluster-inventory-addon", "open-cluster-management.io/cluster-name": "cluster1", "x-k8s.io/cluster-manager": "open-cluster-management",
		}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: "cluster1", ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
	}
	f.create(forged)

	// Unbound: at once, although somebody holds the profile.
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "cluster1"}}
	if err := f.admin.Patch(t.Context(), profile, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.Delete(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	f.gone(team, "cluster1")

	// Bound again, the profile is still on its way out: no token for that.
	f.bind(team)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, settled, true, func(ctx context.Context) (bool, error) {
		for _, in := range []string{team, unbound} {
			if err := f.admin.Get(ctx, client.ObjectKey{Namespace: in, Name: "cluster1-reader"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				return true, fmt.Errorf("a copy in %s: %w", in, err)
			}
		}
		return false, nil
	})
	if !wait.Interrupted(err) {
		t.Fatal(err)
	}
	if err := f.admin.Patch(t.Context(), profile, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	f.expect(true, &corev1.Secret{}, team, "cluster1-reader")

	// The cluster leaves while the manager is away.
	f.stop()
	if err := f.admin.Delete(t.Context(), &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "cluster-inventory"}}); err != nil {
		t.Fatal(err)
	}
	f.start()
	f.expect(false, &corev1.Secret{}, team, "cluster1-reader")
	f.gone(team, "cluster1")

	// It comes back, and the administrator drains.
	back := addonOf()
	back.SetNamespace("cluster1")
	f.create(back)
	f.expect(true, &corev1.Secret{}, team, "cluster1-reader")

	// An account that names nothing goes nowhere, or where the cluster is published.
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "reader"}}
	if err := f.accounts().Patch(t.Context(), account, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))); err != nil {
		t.Fatal(err)
	}
	f.gone(team, "cluster1")
	f.start("--credentials-require-target=false")
	f.expect(true, &corev1.Secret{}, team, "cluster1-reader")
	f.expect(false, &corev1.Secret{}, unbound, "cluster1-reader")

	f.start("--credentials-mode=draining")
	f.expect(false, &corev1.Secret{}, team, "cluster1-reader")
	f.gone(team, "cluster1")
	f.expect(true, &inventoryv1alpha1.ClusterProfile{}, team, "cluster1")
	f.stop()
	f.checkSecrecy()
}

// checkSecrecy looks for the token in all that the manager said, at the highest
// verbosity, as text, in base64 and in the dumps that client-go makes of binary
// bodies.
func (f *fleet) checkSecrecy() {
	f.t.Helper()
	said := f.said.String()
	if !strings.Contains(said, "Response Body") || !strings.Contains(said, "cluster1-reader") {
		f.t.Fatal("the manager says too little for this to show anything")
	}
	tail := []byte(f.token[len(f.token)-24:])
	forms := map[string]string{
		"text":   string(tail),
		"base64": base64.StdEncoding.EncodeToString([]byte(f.token))[40:80],
	}
	// A dump's lines are of two groups of eight; six bytes are within one somewhere.
	for i := range len(tail) - 6 {
		forms[fmt.Sprintf("hex, from %d", i)] = fmt.Sprintf("% x", tail[i:i+6])
	}
	for as, form := range forms {
		if strings.Contains(said, form) {
			f.t.Errorf("the manager's log holds the token as %s", as)
		}
	}
}
