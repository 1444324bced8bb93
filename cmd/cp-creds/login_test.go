package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/ptr"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	inventoryclient "sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

const (
	clusterName = "cluster1"
	accountName = "argocd"
	secretName  = clusterName + "-" + accountName

	// accountNamespace is where managed-serviceaccount keeps accounts on a spoke.
	accountNamespace = "open-cluster-management-agent-addon"
)

// A consumer configured as upstream's documentation says needs nothing to log in
// but a profile, its provider file and the right to get Secrets in its namespace.
func TestConsumerLogsInThroughProfile(t *testing.T) {
	world := newWorld(t)
	world.copyToken(world.token(t), nil)
	for name, env := range map[string][2]string{
		"in the namespace of its kubeconfig": {"NAMESPACE", ""},
		"in the namespace of $NAMESPACE":     {"NAMESPACE", world.namespace},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfigNamespace := world.namespace
			if env[1] != "" {
				kubeconfigNamespace = "kube-system" // where the consumer may read nothing
			}
			t.Setenv(env[0], env[1])
			t.Setenv("KUBECONFIG", world.kubeconfig(t, world.user, kubeconfigNamespace))
			if got := whoAmI(t, world.consumer(t)); got != "system:serviceaccount:"+accountNamespace+":"+accountName {
				t.Errorf("the spoke sees %q", got)
			}
			consumer := kubernetes.NewForConfigOrDie(world.consumer(t))
			list, err := consumer.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				t.Errorf("namespaces of the spoke: %d, %v", len(list.Items), err)
			}
		})
	}
}

func TestCredentialSaysWhenToAskAgain(t *testing.T) {
	world := newWorld(t)
	token := world.token(t)
	world.copyToken(token, nil)
	end := expiry(t, token).Add(-30 * time.Second)
	for args, maxCache := range map[string]time.Duration{
		"":                5 * time.Minute,
		"--max-cache=30s": 30 * time.Second,
		"--max-cache=10h": 10 * time.Hour, // longer than the token is good
	} {
		// The answer has whole seconds.
		earliest := time.Now().Truncate(time.Second).Add(maxCache)
		got := call(
			t,
			program(),
			world.env(t, clusterName),
			strings.Fields("--managed-serviceaccount="+accountName+" "+args)...)
		latest := time.Now().Add(maxCache)
		if earliest.After(end) {
			earliest, latest = end, end
		}
		var answer struct {
			Kind, APIVersion string
			Status           struct {
				Token               string
				ExpirationTimestamp time.Time
			}
		}
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != 0 || got.stderr != "" {
			t.Fatalf("%q: code %d, stderr %q, %v", args, got.code, got.stderr, err)
		}
		if answer.Kind != "ExecCredential" || answer.APIVersion != "client.authentication.k8s.io/v1" ||
			answer.Status.Token != token {
			t.Errorf("%q: a %s of %s, the token %t", args, answer.Kind, answer.APIVersion, answer.Status.Token == token)
		}
		if again := answer.Status.ExpirationTimestamp; again.Before(earliest) || again.After(latest) {
			t.Errorf("%q: is to be asked again at %s, want from %s to %s", args, again, earliest, latest)
		}
	}
}

// expiry returns when a token says that it expires.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("a token of %d parts", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	apitest.Must(t, err)
	var claims struct {
		Expires int64 `json:"exp"`
	}
	apitest.Must(t, json.Unmarshal(payload, &claims))
	return time.Unix(claims.Expires, 0)
}

// A consumer that runs loses a withdrawn token, too, though it is valid for
// minutes.
func TestRunningConsumerLosesWithdrawnCopy(t *testing.T) {
	world := newWorld(t)
	world.copyToken(world.token(t), nil)
	t.Setenv("KUBECONFIG", world.kubeconfig(t, world.user, world.namespace))
	client := kubernetes.NewForConfigOrDie(world.consumer(t, "--max-cache=1s"))
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	world.hub.MustDelete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.namespace, Name: secretName}})
	world.hub.Eventually("the consumer is refused a token", func() string {
		_, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil && strings.Contains(err.Error(), "cp-creds failed with exit code 5") {
			return ""
		}
		return fmt.Sprint("the answer: ", err)
	})
}

// No request fails when a token is rotated: the client asks again before the spoke
// rejects the old one.
func TestRunningConsumerPicksUpRotatedToken(t *testing.T) {
	world := newWorld(t)
	world.copyToken(world.token(t), nil)
	t.Setenv("KUBECONFIG", world.kubeconfig(t, world.user, world.namespace))
	config := world.consumer(t, "--max-cache=1s")
	answers := &statuses{seen: map[int]int{}}
	config.Wrap(answers.wrap)
	client := kubernetes.NewForConfigOrDie(config)
	first := tokenID(t, client)
	world.copyToken(world.token(t), nil)
	world.hub.Eventually("the consumer uses the new token", func() string {
		if tokenID(t, client) == first {
			return "it uses the first one"
		}
		return ""
	})
	if got := answers.all(); len(got) != 1 || got[http.StatusCreated] < 2 {
		t.Errorf("answers by status = %v, want none but %d", got, http.StatusCreated)
	}
}

func TestFailureSaysWhatToDo(t *testing.T) {
	world := newWorld(t)
	token := world.token(t)
	world.copyToken(token, map[string]string{
		"inventory.open-cluster-management.io/source-cluster": clusterName,
		"inventory.open-cluster-management.io/source-account": accountName,
	})
	other := hub.Namespace(t, nil)
	silent := silentServer(t)
	flag := "--managed-serviceaccount=" + accountName

	for name, test := range map[string]struct {
		env  []string
		args []string
		code int
		want []string
	}{
		"no account named": {execInfo(clusterName), nil, 2, []string{"--managed-serviceaccount: is required"}},
		"an account that is none": {
			execInfo(clusterName), []string{"--managed-serviceaccount=a/b"}, 2, []string{`"a/b" is not the name of an account`},
		},
		"an unknown flag": {
			execInfo(clusterName), []string{flag, "--cluster=x"}, 2, []string{"unknown flag: --cluster"},
		},
		"no time at all": {
			execInfo(clusterName), []string{flag, "--timeout=0s"}, 2, []string{"--timeout: 0s is not positive"},
		},
		"a namespace that is none": {
			append(execInfo(clusterName), "NAMESPACE=../x"), []string{flag}, 2, []string{`$NAMESPACE: "../x"`},
		},

		"called by hand": {nil, []string{flag}, 3, []string{"$KUBERNETES_EXEC_INFO is not set"}},
		"called with v1beta1": {
			[]string{`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}}`},
			[]string{flag}, 3, []string{"set execConfig.apiVersion to client.authentication.k8s.io/v1 in the provider file"},
		},
		"called without cluster info": {
			[]string{`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`},
			[]string{flag}, 3, []string{"set execConfig.provideClusterInfo to true in the provider file"},
		},
		"a name that is a path": {
			execInfo("../" + clusterName), []string{flag}, 3, []string{`"../cluster1"`, "not the name of a cluster"},
		},

		"no hub": {
			append(execInfo(clusterName), "KUBECONFIG=/absent"), []string{flag}, 4,
			[]string{"cannot tell where the hub's API server is"},
		},
		"a broken hub": {
			append(execInfo(clusterName), "KUBECONFIG="+apitest.File(t, "kubeconfig", []byte("}"))), []string{flag}, 4,
			[]string{"the kubeconfig cannot be used"},
		},
		"an unknown cluster": {world.env(t, "cluster2"), []string{flag}, 5, []string{
			"there is no Secret " + world.namespace + "/cluster2-argocd (namespace of the kubeconfig's context)", "ManagedServiceAccount cluster2/argocd",
			"authentication.open-cluster-management.io/sync-to-clusterprofile=true",
			"names " + world.namespace + " in its annotation inventory.open-cluster-management.io/sync-to-namespaces",
			"the events of the ClusterProfile " + world.namespace + "/cluster2", "kubectl events -n " + world.namespace,
		}},
		"an unknown account": {
			world.env(t, clusterName), []string{"--managed-serviceaccount=kueue"}, 5, []string{"cluster1-kueue"},
		},
		"no rights there": {append(world.env(t, clusterName), "NAMESPACE="+other), []string{flag}, 6, []string{
			"not allowed to read Secret " + other + "/cluster1-argocd (namespace from $NAMESPACE)", `User "` + world.name + `"`, `grant the consumer "get" on secrets with a Role and a RoleBinding in namespace ` + other,
		}},
		"a hub that does not know the consumer": {
			append(execInfo(clusterName), "KUBECONFIG="+world.kubeconfig(t, rest.AnonymousClientConfig(world.user), world.namespace)),
			[]string{flag}, 6, []string{"system:anonymous"},
		},
		"an account whose name runs into the cluster's": {
			world.env(t, "cluster1-argocd"), []string{"--managed-serviceaccount=x"}, 7,
			[]string{"cluster1/argocd-x, and cluster1-argocd/x is wanted"},
		},
		"a token that has expired": {
			world.env(t, "expired"), []string{flag}, 8,
			[]string{"the token in Secret " + world.namespace + "/expired-argocd expired at 2026-01-01T00:00:00Z"},
		},
		"a hub that is down": {
			append(execInfo(clusterName), "KUBECONFIG="+world.kubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, world.namespace)),
			[]string{flag}, 9, []string{"https://127.0.0.1:1", "connection refused"},
		},
		"a hub that keeps silent": {
			append(execInfo(clusterName), "KUBECONFIG="+world.kubeconfig(t, &rest.Config{Host: silent}, world.namespace)),
			[]string{flag, "--timeout=300ms"}, 9, []string{silent, "within --timeout"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, program(), test.env, test.args...)
			got.mustFail(t, test.code, test.want...)
			if strings.Contains(got.stderr, token) || strings.Contains(got.stderr, "eyJ") {
				t.Error("stderr has a token in it")
			}
		})
	}
}

// world is a hub and a spoke, and a consumer on the hub who may get Secrets in
// one namespace and nothing else.
type world struct {
	hub, spoke *apitest.World
	namespace  string
	name       string
	user       *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{hub: hub.World(t, ocmtest.Scheme()), spoke: spoke.World(t, ocmtest.Scheme())}
	w.namespace = w.hub.Namespace("team", nil)
	w.name = "consumer-of-" + w.namespace
	w.user = hub.User(t, w.name)
	w.grant()
	w.addAccount()
	w.put("expired-argocd", "canary", map[string]string{
		"inventory.open-cluster-management.io/expires": "2026-01-01T00:00:00Z",
	})
	w.put("cluster1-argocd-x", "canary", map[string]string{
		"inventory.open-cluster-management.io/source-cluster": "cluster1",
		"inventory.open-cluster-management.io/source-account": "argocd-x",
	})
	w.publish(t)
	return w
}

func (w *world) grant() {
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "consumer"}
	w.hub.MustCreate(
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.name}},
		})
	w.hub.EventuallyAllowed(w.user, true,
		authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: "get", Resource: "secrets"})
}

// copyToken writes the copy of the account's token, in place like the manager.
func (w *world) copyToken(token string, annotations map[string]string) {
	w.put(secretName, token, annotations)
}

func (w *world) put(name, token string, annotations map[string]string) {
	w.hub.T.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if !w.hub.Find(secret) {
		w.hub.MustCreate(secret)
	}
	apitest.Edit(w.hub, secret, func(s *corev1.Secret) {
		s.Annotations, s.Data = annotations, map[string][]byte{"token": []byte(token)}
	})
}

// token returns a new token of the account on the spoke, with the shortest
// lifetime there is.
func (w *world) token(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountNamespace, Name: accountName}}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)},
	}
	apitest.Must(t, w.spoke.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// addAccount creates the account on the spoke, which may list namespaces, unless
// an earlier test did.
func (w *world) addAccount() {
	meta := metav1.ObjectMeta{Name: accountName}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountNamespace, Name: accountName}}
	if w.spoke.Find(account) {
		return
	}
	w.spoke.MustCreateIn(accountNamespace, account)
	w.spoke.MustCreate(
		&rbacv1.ClusterRole{
			ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName}},
		})
	w.spoke.EventuallyAllowed(spoke.User(w.spoke.T, "system:serviceaccount:"+accountNamespace+":"+accountName), true,
		authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces"})
}

// publish creates the profile of the spoke, with the access provider that the
// manager writes.
func (w *world) publish(t *testing.T) {
	t.Helper()
	profile := ocmtest.OurProfile(w.namespace, clusterName)
	w.hub.MustCreate(profile)
	config := spoke.Config(t)
	apitest.EditStatus(w.hub, profile, func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name: "open-cluster-management",
			Cluster: clientcmdv1.Cluster{
				Server:                   config.Host,
				CertificateAuthorityData: config.CAData,
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "client.authentication.k8s.io/exec",
					Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"` + clusterName + `"}`)},
				}},
			},
		}}
	})
}

// consumer returns the configuration that a consumer builds from the profile and
// from a provider file in the form that upstream documents, whose program is in
// "./bin".
func (w *world) consumer(t *testing.T, more ...string) *rest.Config {
	t.Helper()
	t.Chdir(workDir)
	args, err := json.Marshal(append([]string{"--managed-serviceaccount=" + accountName}, more...))
	apitest.Must(t, err)
	providers, err := access.NewFromFile(apitest.File(t, "providers.json", []byte(`{
		"providers": [
			{
				"name": "open-cluster-management",
				"execConfig": {
					"apiVersion": "client.authentication.k8s.io/v1",
					"command": "./bin/cp-creds",
					"args": `+string(args)+`,
					"provideClusterInfo": true,
					"interactiveMode": "Never"
				}
			}
		]
	}`)))
	apitest.Must(t, err)
	profiles := inventoryclient.NewForConfigOrDie(hub.Config(t)).ApisV1alpha1().ClusterProfiles(w.namespace)
	profile, err := profiles.Get(t.Context(), clusterName, metav1.GetOptions{})
	apitest.Must(t, err)
	config, err := providers.BuildConfigFromCP(profile)
	apitest.Must(t, err)
	config.QPS = -1
	return config
}

// kubeconfig writes a file that names a namespace.
func (w *world) kubeconfig(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	return apitest.File(t, "kubeconfig", apitest.Kubeconfig(t, config, namespace))
}

// env is the environment in which the consumer calls the program for a cluster.
func (w *world) env(t *testing.T, cluster string) []string {
	t.Helper()
	return append(execInfo(cluster), "KUBECONFIG="+w.kubeconfig(t, w.user, w.namespace))
}

func execInfo(cluster string) []string {
	return []string{
		fmt.Sprintf(
			`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{"server":"https://x/%[1]s","config":{"clusterName":%[1]q}}}}`,
			cluster,
		),
	}
}

// statuses counts the answers to a client by HTTP status.
type statuses struct {
	mu   sync.Mutex
	seen map[int]int
}

func (s *statuses) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.seen[0]++
		} else {
			s.seen[resp.StatusCode]++
		}
		return resp, err
	})
}

func (s *statuses) all() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func review(t *testing.T, client *kubernetes.Clientset) authenticationv1.UserInfo {
	t.Helper()
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	apitest.Must(t, err)
	return answer.Status.UserInfo
}

func whoAmI(t *testing.T, config *rest.Config) string {
	t.Helper()
	return review(t, kubernetes.NewForConfigOrDie(config)).Username
}

// tokenID distinguishes the tokens of an account.
func tokenID(t *testing.T, client *kubernetes.Clientset) string {
	t.Helper()
	ids := review(t, client).Extra["authentication.kubernetes.io/credential-id"]
	if len(ids) != 1 {
		t.Fatalf("the server gives the ids %v, want one", ids)
	}
	return ids[0]
}

// silentServer accepts connections and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	apitest.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}
