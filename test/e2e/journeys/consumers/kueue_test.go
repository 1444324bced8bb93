package consumers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	kueueNamespace  = "kueue-system"
	kueueDeployment = "kueue-controller-manager"
	kueueAccount    = "multikueue"
	jobs            = "my-jobs"                       // namespace and queue
	workerLabel     = "multikueue.example.com/worker" // of the set that the guide binds
)

// workerValues are those of Kueue on a cluster: the frameworks of the hub, and nothing
// about other clusters.
const workerValues = `
managerConfig:
  controllerManagerConfigYaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    integrations:
      frameworks: [batch/job]
`

// Setting up MultiKueue exactly as docs/kueue.md says makes Jobs run on a cluster. New
// tokens cost no connection, and a withdrawn cluster is not used until it is back.
func TestMultiKueue(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	showWorkloads(t)
	apitest.Must(t, consumers.BuildImage(t.Context(), journeys.Fleet, os.Stderr))
	installKueue(t, journeys.Cluster1, apitest.File(t, "values.yaml", []byte(workerValues)))
	t.Cleanup(func() { labelWorker(context.Background(), t, nil) })

	read := &reader{files: map[string]func(*testing.T, string){
		"values.yaml": func(t *testing.T, path string) { installKueue(t, fleet.HubName, asksOften(t, path)) },
		"plugin.yaml": nil, "plugin-copied.yaml": nil,
	}}
	read.follow(t, "kueue.md", "MultiKueue, step by step")
	rolledOut(t, fleet.HubName, kueueNamespace, kueueDeployment)
	copied(t, kueueNamespace, journeys.Cluster1, kueueAccount)
	activeIs(t, metav1.ConditionTrue, "Active")
	runsJob(t, "first")

	t.Log("=== a rotated token costs no connection")
	before, watches := activeIs(t, metav1.ConditionTrue, "Active"), watchesBegun(t)
	rotated(t, kueueNamespace, journeys.Cluster1, kueueAccount)
	runsJob(t, "after-rotation")
	if after := activeIs(t, metav1.ConditionTrue, "Active"); after != before {
		t.Errorf("Active changed at %s, and before the rotation at %s", after, before)
	}
	if now := watchesBegun(t); now != watches || watches == 0 {
		t.Errorf("Kueue has begun %d watches of the cluster, and %d before the rotation", now, watches)
	}

	t.Log("=== each change of a profile costs a connection")
	flapping := func(int) time.Duration { return time.Second / 20 }
	budgeted := func(n int) time.Duration {
		if n < 10 {
			return 0
		}
		return time.Second
	}
	without, with := begunWhile(t, "without a budget", flapping), begunWhile(t, "with a budget", budgeted)
	if with == 0 || with >= without {
		t.Errorf("%d watches begun with a budget, and %d without one", with, without)
	}
	activeIs(t, metav1.ConditionTrue, "Active")

	t.Log("=== a cluster that is withdrawn is not active, and one that is back is")
	labelWorker(t.Context(), t, nil)
	activeIs(t, metav1.ConditionFalse, "BadClusterProfile")
	apitest.Within(t, journeys.Soon, "the token is withdrawn", func(ctx context.Context) error {
		return journeys.Gone(ctx, journeys.Hub(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: kueueNamespace, Name: journeys.Cluster1 + "-" + kueueAccount,
		}})
	})
	labelWorker(t.Context(), t, "true")
	activeIs(t, metav1.ConditionTrue, "Active")
	runsJob(t, "after-return")

	t.Log("=== the plugin as an init container copies it")
	watches = watchesBegun(t)
	read.command(t, "kubectl patch deployment "+kueueDeployment+" -n "+kueueNamespace+" --patch-file plugin-copied.yaml")
	rolledOut(t, fleet.HubName, kueueNamespace, kueueDeployment)
	// Active is still the report of the previous Kueue, and a Workload that this one takes
	// up before it is connected stays as it is.
	apitest.Within(t, journeys.Eventually, "the new Kueue is connected", func(context.Context) error {
		if now := watchesBegun(t); now <= watches {
			return fmt.Errorf("%d watches were begun, as before", now)
		}
		return nil
	})
	runsJob(t, "after-upgrade")
	activeIs(t, metav1.ConditionTrue, "Active")
}

// begunWhile changes an annotation of the cluster's profile for ten seconds, with a pause after
// each time, and returns how many watches of the cluster Kueue begins meanwhile. How often the
// manager writes a profile is tested elsewhere.
func begunWhile(t *testing.T, what string, pause func(writes int) time.Duration) (watches int) {
	t.Helper()
	const churn = 10 * time.Second
	profile := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: kueueNamespace, Name: journeys.Cluster1},
	}
	before, writes := watchesBegun(t), 0
	for began := time.Now(); time.Since(began) < churn; writes++ {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/changed":"%d"}}}`, time.Now().UnixNano())
		apitest.Must(t, journeys.Hub(t).Patch(t.Context(), profile, client.RawPatch(types.MergePatchType, []byte(patch))))
		<-time.After(pause(writes))
	}
	last := watchesBegun(t)
	for isQuiet := false; !isQuiet; {
		<-time.After(2 * time.Second)
		now := watchesBegun(t)
		isQuiet, last = now == last, now
	}
	t.Logf("%s: %d writes in %s, %d watches begun", what, writes, churn, last-before)
	return last - before
}

// labelWorker sets the label by which the guide's set selects clusters, nil to remove it.
func labelWorker(ctx context.Context, t *testing.T, value any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{workerLabel: value}}})
	apitest.Must(t, err)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: journeys.Cluster1}}
	apitest.Must(t, journeys.Hub(t).Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)))
}

// asksOften changes the guide's values so that Kueue calls the plugin again two seconds
// after each credential instead of five minutes, to see that a new token is used.
func asksOften(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	apitest.Must(t, err)
	const args = "args: [--managed-serviceaccount=" + kueueAccount + "]"
	if !strings.Contains(string(content), args) {
		t.Fatalf("the guide's values have no %q", args)
	}
	more := strings.Replace(string(content), args, strings.TrimSuffix(args, "]")+", --max-cache=2s]", 1)
	return apitest.File(t, "values.yaml", []byte(more))
}

// installKueue installs Kueue's own chart with the values in a file.
func installKueue(t *testing.T, cluster, values string) {
	t.Helper()
	sources, err := fleet.KueueSources(t.Context())
	apitest.Must(t, err)
	objects, err := journeys.Fleet.Template(
		t.Context(), "kueue", filepath.Join(sources, "charts", "kueue"), kueueNamespace, "--values", values,
		"--set", "controllerManager.manager.image.repository="+fleet.KueueImage,
		"--set", "controllerManager.manager.image.tag=v0.19.2",
	)
	apitest.Must(t, err)
	objects = without(objects, "APIService")
	objects = append(decode(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+kueueNamespace+"}}"), objects...)
	apitest.Must(t, journeys.Fleet.Apply(t.Context(), cluster, objects...))
	rolledOut(t, cluster, kueueNamespace, kueueDeployment)
}

// activeIs waits until the MultiKueueCluster's condition Active has a status and reason, and
// returns when it last changed.
func activeIs(t *testing.T, status metav1.ConditionStatus, reason string) string {
	t.Helper()
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	cluster.SetKind("MultiKueueCluster")
	cluster.SetName(journeys.Cluster1)
	changed := ""
	what := "the MultiKueueCluster is Active=" + string(status)
	apitest.Within(t, journeys.Eventually, what, func(ctx context.Context) error {
		active, err := condition(ctx, journeys.Hub(t), cluster, "Active")
		if err != nil {
			return err
		}
		if active["status"] != string(status) || active["reason"] != reason {
			return fmt.Errorf("it is %v", active)
		}
		changed = fmt.Sprint(active["lastTransitionTime"])
		return nil
	})
	t.Logf("MultiKueueCluster %s: Active=%s (%s)", journeys.Cluster1, status, reason)
	return changed
}

// watchesBegun returns how many watches of the cluster Kueue reports to have started.
func watchesBegun(t *testing.T) int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(
		journeys.Fleet.LogDir(), fleet.HubName, "pods", kueueNamespace+"_"+kueueDeployment+"-*_manager.log",
	))
	apitest.Must(t, err)
	begun := 0
	for _, log := range logs {
		content, err := os.ReadFile(log)
		apitest.Must(t, err)
		begun += strings.Count(string(content), "Starting watch")
	}
	return begun
}

// runsJob creates a Job on the hub, and waits until it is complete there and its Pod has
// said hello on the cluster.
func runsJob(t *testing.T, name string) {
	t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: jobs, GenerateName: name + "-", Labels: map[string]string{"kueue.x-k8s.io/queue-name": jobs},
		},
		Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: fleet.ConsumerImage, Command: []string{"/greeter"},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
					},
				}},
			}},
		},
	}
	apitest.Must(t, journeys.Hub(t).Create(t.Context(), job))
	if !ptr.Deref(job.Spec.Suspend, false) || ptr.Deref(job.Spec.ManagedBy, "") != "kueue.x-k8s.io/multikueue" {
		t.Errorf("Kueue's webhook has let the Job be %+v", job.Spec)
	}
	apitest.Within(t, journeys.Eventually, "Job "+name+" is complete on the hub", func(ctx context.Context) error {
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", job.Status)
	})
	apitest.Within(t, journeys.Soon, "Job "+name+" has run on "+journeys.Cluster1, func(context.Context) error {
		said, err := filepath.Glob(filepath.Join(
			journeys.Fleet.LogDir(), journeys.Cluster1, "pods", jobs+"_"+job.Name+"-*_main.log",
		))
		if err != nil || len(said) != 1 {
			return fmt.Errorf("its Pods have the logs %v (%w)", said, err)
		}
		content, err := os.ReadFile(said[0])
		if err == nil && !strings.HasPrefix(string(content), "hello from "+job.Name) {
			err = fmt.Errorf("it says %q", content)
		}
		return err
	})
	t.Logf("Job %s: complete on the hub, and its Pod ran on %s", name, journeys.Cluster1)
}

// showWorkloads shows, if the story fails, how far Kueue has come with its Jobs.
func showWorkloads(t *testing.T) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		const line = "kubectl get workloads.v1beta2.kueue.x-k8s.io -A -o yaml"
		for _, cluster := range []string{fleet.HubName, journeys.Cluster1} {
			said, err := guide.Type(context.Background(), journeys.Fleet,
				"export KUBECONFIG="+journeys.Fleet.Kubeconfig(cluster)+"\n"+line, "")
			t.Logf("Workloads on %s (%v):\n%s", cluster, err, said)
		}
	})
}
