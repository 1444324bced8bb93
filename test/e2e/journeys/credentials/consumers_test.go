package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	// Where the consumers' Pods find the plugins: this addon's, which an init
	// container copies, and upstream's.
	ourPlugin      = "/plugin/cp-creds"
	upstreamPlugin = "/upstream/cp-creds"

	// maxCache is how long the consumers here use what the plugin says.
	maxCache = 2 * time.Second
)

// consumer is a namespace with a program's rights, a provider file that
// names an account and a plugin, and profiles and tokens of clusters.
func consumer(t *testing.T, accountName, plugin string, clusters ...string) string {
	t.Helper()
	journeys.WithAccess(t)
	apitest.Must(t, journeys.BuildConsumers())
	ns := journeys.Sandbox(t, "consumer", clusters...)
	args := []string{"--managed-serviceaccount=" + accountName}
	if plugin == ourPlugin {
		args = append(args, "--max-cache="+maxCache.String())
	}
	equip(t, ns, plugin, args)
	for _, cluster := range clusters {
		reaches(t, ns, cluster)
		mayWork(t, cluster, accountName)
		account(t, cluster, accountName, ns)
		hasCopy(t, ns, cluster, accountName)
		journeys.Allowed(t, cluster, journeys.AgentNS, accountName,
			authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces"})
	}
	journeys.Allowed(t, "hub", ns, "consumer",
		authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "secrets"})
	return ns
}

// equip creates what a program needs on the hub.
func equip(t *testing.T, ns, plugin string, args []string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: ns, Name: "consumer"}
	journeys.Create(t, journeys.Hub(t), &corev1.ServiceAccount{ObjectMeta: meta})
	journeys.Create(t, journeys.Hub(t), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"},
			Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}})
	journeys.Create(t, journeys.Hub(t), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: meta.Name}},
	})
	providers, err := json.Marshal(map[string]any{"providers": []any{map[string]any{
		"name": "open-cluster-management",
		"execConfig": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "args": args,
			"provideClusterInfo": true, "interactiveMode": "Never",
		},
	}}})
	apitest.Must(t, err)
	journeys.Create(t, journeys.Hub(t),
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"providers.json": string(providers)}})
}

// reaches waits until the cluster's profile has an access provider.
func reaches(t *testing.T, ns, cluster string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, "a way in to "+cluster+" in "+ns, func(ctx context.Context) error {
		profile, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, cluster)
		if err != nil {
			return err
		}
		for _, provider := range profile.Status.AccessProviders {
			if provider.Name == "open-cluster-management" && provider.Cluster.Server == "https://"+fleet.UserServer+"/"+cluster {
				return nil
			}
		}
		return fmt.Errorf("it has %+v", profile.Status.AccessProviders)
	})
}

// mayWork gives an account, on its cluster, the rights that the programs use.
func mayWork(t *testing.T, cluster, accountName string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "journey-" + accountName}
	journeys.Create(t, journeys.ClientOf(t, cluster), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "patch"}},
	}})
	journeys.Create(t, journeys.ClientOf(t, cluster), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: journeys.AgentNS, Name: accountName}},
	})
}

// consumerPod runs a program of the consumers' image, with this addon's plugin at hand.
func consumerPod(command ...string) corev1.PodSpec {
	restricted := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return corev1.PodSpec{
		ServiceAccountName: "consumer",
		InitContainers: []corev1.Container{{
			Name: "cp-creds", Image: fleet.ImageRepository,
			Command: []string{"/cp-creds", "install", filepath.Dir(ourPlugin)}, SecurityContext: restricted,
			VolumeMounts: []corev1.VolumeMount{{Name: "plugin", MountPath: filepath.Dir(ourPlugin)}},
		}},
		Containers: []corev1.Container{{
			Name: "main", Image: fleet.ConsumerImage, SecurityContext: restricted,
			Command: append(command, "-clusterprofile-provider-file=/etc/consumer/providers.json"),
			Env: []corev1.EnvVar{{Name: "POD_IP",
				ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "plugin", MountPath: filepath.Dir(ourPlugin), ReadOnly: true},
				{Name: "config", MountPath: "/etc/consumer"},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "plugin", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "consumer"}}}},
		},
	}
}

// lists runs the lister to its end and returns its exit code and output.
func lists(t *testing.T, ns string) (int32, string) {
	t.Helper()
	spec := consumerPod("/lister")
	spec.RestartPolicy = corev1.RestartPolicyNever
	pod := journeys.Create(t, journeys.Hub(t),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "lister-"}, Spec: spec})
	var code int32
	apitest.Within(t, journeys.Eventually, "the lister ends", func(ctx context.Context) error {
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, container := range pod.Status.ContainerStatuses {
			if container.State.Terminated != nil {
				code = container.State.Terminated.ExitCode
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.InitContainerStatuses)
	})
	log, err := os.ReadFile(filepath.Join(journeys.Fleet.LogDir(), "hub",
		"pods", fmt.Sprintf("%s_%s_main.log", ns, pod.Name)))
	apitest.Must(t, err)
	return code, string(log)
}

// runs starts the reconciler and returns a function that reads its report.
func runs(t *testing.T, ns string) func() status.Report {
	t.Helper()
	labels := map[string]string{"app": "reconciler"}
	journeys.Create(t, journeys.Hub(t), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reconciler"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: consumerPod("/my-consumer")},
		},
	})
	return func() status.Report {
		t.Helper()
		report := status.Report{}
		apitest.Within(t, journeys.Eventually, "the reconciler tells how it goes", func(ctx context.Context) error {
			pods := &corev1.PodList{}
			if err := journeys.Hub(t).List(ctx, pods, client.InNamespace(ns), client.MatchingLabels(labels)); err != nil {
				return err
			}
			if len(pods.Items) != 1 || pods.Items[0].Status.PodIP == "" {
				return fmt.Errorf("there are %d Pods without an address", len(pods.Items))
			}
			for _, container := range pods.Items[0].Status.ContainerStatuses {
				if container.RestartCount > 0 {
					t.Fatalf("the reconciler was restarted: %+v", container)
				}
			}
			return fetch(ctx, "http://"+net.JoinHostPort(pods.Items[0].Status.PodIP, strconv.Itoa(status.Port)), &report)
		})
		return report
	}
}

func fetch(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(resp.Body).Decode(into), resp.Body.Close())
}

// wants creates or changes a ConfigMap on a cluster and waits until the reconciler has
// reconciled it.
func wants(t *testing.T, cluster, name, value string) {
	t.Helper()
	c := journeys.ClientOf(t, cluster)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data: map[string]string{"wanted": value}}
	patch := fmt.Appendf(nil, `{"data":{"wanted":%q}}`, value)
	if err := c.Patch(t.Context(), object,
		client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		journeys.Create(t, c, object)
	}
	apitest.Within(t, journeys.Eventually, cluster+" sees "+value, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.Data["seen"] != value {
			return fmt.Errorf("it sees %q", object.Data["seen"])
		}
		return nil
	})
}

// A program that knows only its namespace lists every cluster in it, through the tunnel,
// with this addon's plugin and with upstream's.
func TestConsumerListsItsClusters(t *testing.T) {
	for name, plugin := range map[string]string{"with cp-creds": ourPlugin, "with upstream's cp-creds": upstreamPlugin} {
		t.Run(name, func(t *testing.T) {
			journeys.Installed(t)
			journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
			ns := consumer(t, "lister", plugin, journeys.Cluster1, journeys.Cluster2)
			code, said := lists(t, ns)
			if code != 0 {
				t.Fatalf("it ended with %d: %s", code, said)
			}
			for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
				// The agent's namespace is on the spokes alone.
				if want := fmt.Sprintf(`{"profile":"%s/%s","namespaces":[`, ns, cluster); !strings.Contains(said, want) {
					t.Errorf("it says %s, want %s in it", said, want)
				}
			}
			if got := strings.Count(said, `"`+journeys.AgentNS+`"`); got != 2 {
				t.Errorf("%d clusters have the namespace %s, want 2: %s", got, journeys.AgentNS, said)
			}
		})
	}
}

// A controller on multicluster-runtime works on both clusters, and neither new tokens nor
// writes to profiles cost it a request or a restart of its caches.
func TestConsumerSurvivesRotation(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	ns := consumer(t, "worker", ourPlugin, clusters...)
	report := runs(t, ns)
	for _, cluster := range clusters {
		wants(t, cluster, "journey", "one")
	}
	before := report()
	for _, cluster := range clusters {
		rotated(t, cluster, "worker")
		journeys.Sets(t, cluster, "journey.example.com", "rotated")
		journeys.Shows(t, ns, cluster, "journey.example.com", "rotated")
		apitest.Within(t, journeys.Soon, "requests to "+cluster+" bear the new token", func(context.Context) error {
			if now := report()[ns+"/"+cluster]; now.Tokens <= before[ns+"/"+cluster].Tokens {
				return fmt.Errorf("%d tokens were seen, as before", now.Tokens)
			}
			return nil
		})
		wants(t, cluster, "journey", "two")
	}
	after := report()
	for _, cluster := range clusters {
		was, is := before[ns+"/"+cluster], after[ns+"/"+cluster]
		if is.Failed != was.Failed || is.Engagements != 1 || !is.Engaged || is.Reconciles <= was.Reconciles {
			t.Errorf("%s: %+v, and before the rotation %+v: want no failed request and one engagement", cluster, is, was)
		}
	}
}

// A withdrawal ends the next login at once, and a running consumer within the time it was
// told; the plugin says why.
func TestConsumerLosesWithdrawnToken(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := consumer(t, "leaver", ourPlugin, journeys.Cluster1, journeys.Cluster2)
	report := runs(t, ns)
	wants(t, journeys.Cluster1, "leaver", "one")
	wants(t, journeys.Cluster2, "leaver", "one")
	before := report()

	account := newAccount(journeys.Cluster1, "leaver")
	edited(t, account, "labels", syncLabel, nil)
	hasNoCopy(t, ns, journeys.Cluster1, "leaver")
	code, said := lists(t, ns)
	for _, want := range []string{
		"there is no Secret " + ns + "/cluster1-leaver (namespace of the pod)",
		fmt.Sprintf(`{"profile":"%s/cluster1","skipped":"this program has no account on the cluster: `, ns),
		"cp-creds failed with exit code 5",
		fmt.Sprintf(`{"profile":"%s/cluster2","namespaces":[`, ns),
	} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("the lister ended with %d and said %s, want %q in it", code, said, want)
		}
	}
	apitest.Within(t, journeys.Soon, "the reconciler's requests to cluster1 fail", func(context.Context) error {
		if now := report()[ns+"/"+journeys.Cluster1]; now.Failed == before[ns+"/"+journeys.Cluster1].Failed {
			return errors.New("none has")
		}
		return nil
	})
	if was, is := before[ns+"/"+journeys.Cluster2], report()[ns+"/"+journeys.Cluster2]; is.Failed != was.Failed {
		t.Errorf("requests to cluster2 failed: %+v", is)
	}

	edited(t, account, "labels", syncLabel, ptr.To("true"))
	hasCopy(t, ns, journeys.Cluster1, "leaver")
	wants(t, journeys.Cluster1, "leaver", "two")
}

// Deleting the account ends all its tokens on the cluster, including those that a
// consumer kept.
func TestDeletedAccountEndsItsTokens(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := consumer(t, "ended", ourPlugin, journeys.Cluster1)
	admin, err := journeys.Fleet.Cluster(journeys.Cluster1)
	apitest.Must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token(t, journeys.Cluster1, "ended")
	bearer, err := client.New(config, client.Options{})
	apitest.Must(t, err)
	apitest.Must(t, bearer.List(t.Context(), &corev1.NamespaceList{}))

	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), newAccount(journeys.Cluster1, "ended")))
	hasNoCopy(t, ns, journeys.Cluster1, "ended")
	apitest.Within(t, journeys.Soon, "the cluster turns the token down", func(ctx context.Context) error {
		if err := bearer.List(ctx, &corev1.NamespaceList{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it answers: %w", err)
		}
		return nil
	})
}
