package charts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// honestWork is a ManifestWork as the manager writes it, with one manifest of each kind
// that a policy inspects. CLUSTER stands for the cluster.
const honestWork = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: addon-cluster-inventory-deploy-0
  ownerReferences:
  - {apiVersion: addon.open-cluster-management.io/v1beta1, kind: ManagedClusterAddOn, name: cluster-inventory, uid: u}
spec:
  deleteOption:
    propagationPolicy: SelectivelyOrphan
    selectivelyOrphans:
      orphaningRules:
      - {group: "", resource: namespaces, name: agents}
      - {group: apiextensions.k8s.io, resource: customresourcedefinitions, name: clusterproperties.about.k8s.io}
  manifestConfigs:
  - resourceIdentifier:
      {group: apps, resource: deployments, namespace: agents, name: cluster-inventory-agent}
    feedbackRules: [{type: WellKnownStatus}]
    conditionRules: [{type: CEL, condition: Available, celExpressions: ["true"]}]
  - resourceIdentifier:
      {group: apiextensions.k8s.io, resource: customresourcedefinitions, name: clusterproperties.about.k8s.io}
    updateStrategy: {type: CreateOnly}
  workload:
    manifests:
    - {apiVersion: v1, kind: Namespace, metadata: {name: agents, creationTimestamp: null}, spec: {}}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      metadata: {name: "open-cluster-management:cluster-inventory:agent"}
      rules:
      - {apiGroups: [about.k8s.io], resources: [clusterproperties], verbs: [get, list, watch]}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRoleBinding
      metadata: {name: "open-cluster-management:cluster-inventory:agent"}
      roleRef:
        apiGroup: rbac.authorization.k8s.io
        kind: ClusterRole
        name: open-cluster-management:cluster-inventory:agent
      subjects: [{kind: ServiceAccount, name: cluster-inventory-agent, namespace: agents}]
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: cluster-inventory-agent, namespace: agents, labels: {app.kubernetes.io/managed-by: addon}}
      spec:
        replicas: 1
        strategy: {type: Recreate}
        selector: {matchLabels: {app.kubernetes.io/name: cluster-inventory-agent}}
        template:
          metadata: {creationTimestamp: null, labels: {app.kubernetes.io/name: cluster-inventory-agent}}
          spec:
            serviceAccountName: cluster-inventory-agent
            securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
            containers:
            - name: agent
              image: quay.io/open-cluster-management/cluster-inventory-addon:v1
              command: [/agent]
              args: [run, --hub-kubeconfig=/var/run/hub/kubeconfig, "--health-probe-bind-address=$(POD_IP):8081",
                --cluster-name=CLUSTER, --claim-limit=20, "--reserved-properties=*.a,b", --addon-uid=u-1,
                --install-namespace=agents, -v=10, --log-format=json]
              env:
              - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
              - {name: HTTPS_PROXY, value: "https://user:pa$$(HOME)@proxy:2"}
              - {name: PROXY_CA_BUNDLE, value: a CA}
              ports: [{name: health, containerPort: 8081}]
              readinessProbe: {httpGet: {path: /readyz, port: 8081}, periodSeconds: 5}
              livenessProbe: {httpGet: {path: /healthz, port: 8081}, initialDelaySeconds: 10, periodSeconds: 15}
              securityContext:
                {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
              volumeMounts: [{name: hub-kubeconfig, mountPath: /var/run/hub, readOnly: true}]
            volumes: [{name: hub-kubeconfig, secret: {secretName: cluster-inventory-hub-kubeconfig}}]
`

// imagePath is the repository of the image in honestWork, without its registry.
const imagePath = "open-cluster-management/cluster-inventory-addon"

// Where the manifests are in honestWork.
const (
	workNamespace = iota
	workRole
	workBinding
	workAgent
)

// workOf decodes honestWork for a cluster.
func workOf(t *testing.T, cluster string) *unstructured.Unstructured {
	t.Helper()
	work := &unstructured.Unstructured{}
	apitest.Must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(honestWork, "CLUSTER", cluster)), &work.Object))
	work.SetNamespace(cluster)
	return work
}

// set puts a value, given as YAML, at a path.
func set(t *testing.T, in map[string]any, value string, path ...string) {
	t.Helper()
	var decoded any
	apitest.Must(t, yaml.Unmarshal([]byte(value), &decoded))
	apitest.Must(t, unstructured.SetNestedField(in, decoded, path...))
}

// change returns a change of one manifest of honestWork.
func change(t *testing.T, manifest int, value string, path ...string) func(*unstructured.Unstructured) {
	t.Helper()
	return func(work *unstructured.Unstructured) {
		manifests, _, err := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		apitest.Must(t, err)
		set(t, manifests[manifest].(map[string]any), value, path...)
		apitest.Must(t, unstructured.SetNestedSlice(work.Object, manifests, "spec", "workload", "manifests"))
	}
}

// changeContainer returns a change of the agent's container in honestWork.
func changeContainer(t *testing.T, value string, path ...string) func(*unstructured.Unstructured) {
	t.Helper()
	return func(work *unstructured.Unstructured) {
		manifests, _, err := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		apitest.Must(t, err)
		pod := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(manifests[workAgent].(map[string]any), pod...)
		apitest.Must(t, err)
		set(t, containers[0].(map[string]any), value, path...)
		apitest.Must(t, unstructured.SetNestedSlice(manifests[workAgent].(map[string]any), containers, pod...))
		apitest.Must(t, unstructured.SetNestedSlice(work.Object, manifests, "spec", "workload", "manifests"))
	}
}

// add returns a change of honestWork that adds a manifest.
func add(t *testing.T, manifest string) func(*unstructured.Unstructured) {
	t.Helper()
	return func(work *unstructured.Unstructured) {
		manifests, _, err := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		apitest.Must(t, err)
		var decoded map[string]any
		apitest.Must(t, yaml.Unmarshal([]byte(manifest), &decoded))
		apitest.Must(t, unstructured.SetNestedSlice(work.Object, append(manifests, decoded), "spec", "workload", "manifests"))
	}
}

// A client that may write ManifestWorks has all rights of the klusterlet's work agent on
// every spoke, including that of reading its Secrets to the hub.
func testTheManagerMaySendClustersOnlyItsAgents(t *testing.T) {
	p := install(t)
	p.hostAgents() // policies limit what more rights allow
	cluster := p.namespace("cluster1", ocmtest.Addon(""))
	other := workOf(t, cluster)
	other.SetName("another")
	p.eventuallyRefused(other, "only the ManifestWorks of its own agents")
	for name, attempt := range workAttempts(t, cluster) {
		t.Run(name, func(t *testing.T) {
			work := workOf(t, cluster)
			attempt.change(work)
			err := p.manager.Create(t.Context(), work, client.DryRunAll)
			checkAttempt(t, err, attempt.message)
		})
	}

	t.Run("the clean-up", func(t *testing.T) {
		for change, message := range map[string]string{
			"": "", ", parallelism: 2": "only one pod of each", ", completions: 2": "only one pod of each",
		} {
			work := workOf(t, cluster)
			work.SetName("addon-cluster-inventory-pre-delete")
			job := strings.Replace(cleanupJob, "backoffLimit: 4", "backoffLimit: 4"+change, 1)
			set(t, work.Object, "["+job+"]", "spec", "workload", "manifests")
			set(t, work.Object, `[{resourceIdentifier:
				{group: batch, resource: jobs, namespace: agents, name: cluster-inventory-cleanup},
				feedbackRules: [{type: WellKnownStatus}]}]`, "spec", "manifestConfigs")
			unstructured.RemoveNestedField(work.Object, "spec", "deleteOption")
			checkAttempt(t, p.manager.Create(t.Context(), work, client.DryRunAll), message)
		}
	})
	t.Run("a hosted agent", func(t *testing.T) {
		const own = "only their own namespace"
		long, shortened := strings.Repeat("c", 63), "cluster-inventory--"+strings.Repeat("c", 35)
		barely, tooLong := strings.Repeat("c", 45), strings.Repeat("c", 46)
		for name, attempt := range map[string]struct {
			of, in  string
			change  func(*unstructured.Unstructured)
			message string
		}{
			"in its own namespace": {of: "guest", in: "cluster-inventory-guest"},
			"on its own host": {
				of: cluster, in: "cluster-inventory-" + cluster, message: "only the ManifestWorks of its own agents",
			},
			"in another's":                           {of: "another", in: "cluster-inventory-guest", message: own},
			"with the longest name that is whole":    {of: barely, in: "cluster-inventory-" + barely},
			"with a name that is shortened":          {of: long, in: shortened + "-0123abcd"},
			"with the shortest of these":             {of: tooLong, in: shortened + "-0123abcd"},
			"in another's whose name is shortened":   {of: "guest", in: shortened + "-0123abcd", message: own},
			"of a long name that begins differently": {of: "d" + long[1:], in: shortened + "-0123abcd", message: own},
			"in no namespace of an agent's":          {of: long, in: shortened + "-0123abcx", message: own},
			"that names another cluster": {
				of: "guest", in: "cluster-inventory-guest", message: refusedArguments,
				change: changeContainer(t, "[run, --cluster-name="+cluster+"]", "args"),
			},
			"with the kubeconfig in the place of the hub's": {
				of: "guest", in: "cluster-inventory-guest", message: refusedArguments,
				change: changeContainer(t, "[{name: managed-kubeconfig, mountPath: /var/run/hub, readOnly: true}]", "volumeMounts"),
			},
		} {
			work := workOf(t, attempt.of)
			manifests, _, err := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			apitest.Must(t, err)
			var policy, account any
			apitest.Must(t, yaml.Unmarshal([]byte(policyFor("cluster-inventory-agent", "cluster-inventory-agent")), &policy))
			apitest.Must(t, yaml.Unmarshal([]byte(`{apiVersion: v1, kind: ServiceAccount,
				metadata: {name: cluster-inventory-agent}, automountServiceAccountToken: false}`), &account))
			kept := []any{manifests[workNamespace], policy, account, manifests[workAgent]}
			apitest.Must(t, unstructured.SetNestedSlice(work.Object, kept, "spec", "workload", "manifests"))
			change(t, workAgent, managedVolume, "spec", "template", "spec", "volumes")(work)
			changeContainer(t, `[{name: hub-kubeconfig, mountPath: /var/run/hub, readOnly: true},
				{name: managed-kubeconfig, mountPath: /var/run/managed, readOnly: true}]`, "volumeMounts")(work)
			changeContainer(t, `[run, --hub-kubeconfig=/var/run/hub/kubeconfig, --cluster-name=`+attempt.of+`,
				--install-namespace=`+attempt.in+`, --hosted, --kubeconfig=/var/run/managed/kubeconfig]`, "args")(work)
			change(t, workNamespace, attempt.in, "metadata", "name")(work)
			for _, at := range []int{workRole, workBinding, workAgent} {
				change(t, at, attempt.in, "metadata", "namespace")(work)
			}
			set(t, work.Object, `[{group: "", resource: namespaces, name: `+attempt.in+`}]`,
				"spec", "deleteOption", "selectivelyOrphans", "orphaningRules")
			if attempt.change != nil {
				attempt.change(work)
			}
			work.SetNamespace(cluster)
			work.SetOwnerReferences(nil)
			work.SetName("addon-cluster-inventory-deploy-hosting-" + attempt.of + "-0")
			t.Run(name, func(t *testing.T) {
				checkAttempt(t, p.manager.Create(t.Context(), work, client.DryRunAll), attempt.message)
			})
		}
	})
	t.Run("the finalizer of a work with any content", func(t *testing.T) {
		work := workOf(t, cluster)
		changeContainer(t, "registry.example.com/removed-from-the-list:v1", "image")(work)
		work.SetName("addon-cluster-inventory-deploy-1")
		work.SetOwnerReferences(nil)
		work.SetFinalizers([]string{"cluster.open-cluster-management.io/manifest-work-cleanup"})
		p.MustCreate(work)
		checkAttempt(t, p.manager.Delete(t.Context(), work), "")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		checkAttempt(t, p.manager.Patch(t.Context(), work, patch), "")
		p.EventuallyGone(work)
	})
	t.Run("another's work", func(t *testing.T) {
		theirs := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "theirs"}}
		p.MustCreate(theirs)
		const message = "only the ManifestWorks of its own agents"
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		checkAttempt(t, p.manager.Patch(t.Context(), theirs.DeepCopy(), patch), message)
		checkAttempt(t, p.manager.Delete(t.Context(), theirs), message)
		apply := &unstructured.Unstructured{}
		apply.SetAPIVersion("work.open-cluster-management.io/v1")
		apply.SetKind("ManifestWork")
		apply.SetNamespace(cluster)
		apply.SetName("applied")
		err := p.manager.Patch(t.Context(), apply, client.Apply, client.FieldOwner("thief"), client.ForceOwnership) //nolint:staticcheck
		checkAttempt(t, err, message)
	})
	t.Run("as another client", func(t *testing.T) {
		user := rest.CopyConfig(server.User(t, hubtest.User))
		user.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
		other := workOf(t, cluster)
		other.SetName("another")
		if err := apitest.NewClient(t, user, ocmtest.Scheme()).Create(t.Context(), other); !apierrors.IsForbidden(err) {
			t.Errorf("the manager gets %v", err)
		}
	})
	t.Run("other clients are not restricted", func(*testing.T) {
		other.SetResourceVersion("")
		p.MustCreate(other)
	})
}

// What refusals of works say.
const (
	refusedReport    = "the status of its agents alone"
	refusedStrategy  = "no update strategy but CreateOnly"
	refusedFields    = "no owners and no finalizers"
	refusedArguments = "only with their own arguments and mounts"
	refusedProbes    = "probe only its agents"
	refusedImage     = "must be that of an AgentRevision"
)

// workAttempt is a change of honestWork.
type workAttempt struct {
	change  func(*unstructured.Unstructured)
	message string // empty if it is allowed
}

// workAttempts are changes of a cluster's own work.
func workAttempts(t *testing.T, cluster string) map[string]workAttempt {
	t.Helper()
	spec := func(value string, path ...string) func(*unstructured.Unstructured) {
		return func(work *unstructured.Unstructured) {
			set(t, work.Object, value, append([]string{"spec"}, path...)...)
		}
	}
	pod := func(value string, field string) func(*unstructured.Unstructured) {
		return change(t, workAgent, value, "spec", "template", "spec", field)
	}
	named := func(name string) func(*unstructured.Unstructured) {
		return func(work *unstructured.Unstructured) { work.SetName(name) }
	}
	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: clusterproperties.about.k8s.io}, spec: {conversion: {strategy: None}}}`
	const key = `{apiVersion: v1, kind: Secret, metadata: {name: hub-kubeconfig-secret, namespace: agents}}`
	const repository = "quay.io/" + imagePath
	ofNamespace := func(option string) string {
		return `[{resourceIdentifier: {group: "", resource: namespaces, namespace: "", name: agents}, ` + option + `}]`
	}
	args := func(more string) func(*unstructured.Unstructured) {
		return changeContainer(t, `[run, --cluster-name=`+cluster+`, `+more+`]`, "args")
	}
	mount := func(mount string) func(*unstructured.Unstructured) { return changeContainer(t, mount, "volumeMounts") }
	probe := func(probe string) func(*unstructured.Unstructured) { return changeContainer(t, probe, "livenessProbe") }
	pull := func(image string) func(*unstructured.Unstructured) { return changeContainer(t, image, "image") }
	return map[string]workAttempt{
		"its agent":    {change: func(*unstructured.Unstructured) {}},
		"another work": {change: named("another"), message: "only the ManifestWorks of its own agents"},
		"a work whose name the API server makes": {change: func(work *unstructured.Unstructured) {
			work.SetName("")
			work.SetGenerateName("addon-cluster-inventory-deploy-0")
		}, message: "cluster-inventory-manifestworks"},
		"a work that nothing removes": {change: func(work *unstructured.Unstructured) {
			work.SetOwnerReferences(nil)
		}, message: "that belong to its addon"},
		"a Secret that the spoke only reads": {change: func(work *unstructured.Unstructured) {
			add(t, key)(work)
			spec(`[{resourceIdentifier: {group: "", resource: secrets, namespace: agents, name: hub-kubeconfig-secret},
				updateStrategy: {type: ReadOnly},
				feedbackRules: [{type: JSONPaths, jsonPaths: [{name: key, path: .data}]}]}]`, "manifestConfigs")(work)
		}, message: "cluster-inventory"},
		"a Secret": {change: add(t, key), message: "only the manifests of its agents"},
		"feedback from anything": {change: spec(`[{resourceIdentifier: {group: apps, resource: deployments,
			namespace: agents, name: cluster-inventory-agent},
			feedbackRules: [{type: JSONPaths, jsonPaths: [{name: spec, path: .spec}]}]}]`, "manifestConfigs"),
			message: refusedReport},
		"feedback from the namespace": {
			change: spec(ofNamespace("feedbackRules: [{type: WellKnownStatus}]"), "manifestConfigs"), message: refusedReport,
		},
		"a condition of the namespace": {
			change: spec(ofNamespace(`conditionRules: [{type: CEL, condition: A, celExpressions: ["true"]}]`),
				"manifestConfigs"), message: refusedReport,
		},
		"an object that is only read": {
			change: spec(ofNamespace("updateStrategy: {type: ReadOnly}"), "manifestConfigs"), message: refusedStrategy,
		},
		"an object whose fields it takes": {
			change:  spec(ofNamespace("updateStrategy: {type: ServerSideApply}"), "manifestConfigs"),
			message: refusedStrategy,
		},
		"the strategy of none, named": {
			change: spec(ofNamespace("updateStrategy: {type: Update}"), "manifestConfigs"), message: refusedStrategy,
		},
		"an owner that is not there": {
			change: change(t, workNamespace, `[{apiVersion: v1, kind: ConfigMap, name: not-there, uid: not-there}]`,
				"metadata", "ownerReferences"), message: refusedFields,
		},
		"an owner of the pods": {
			change: change(t, workAgent, `[{apiVersion: v1, kind: ConfigMap, name: not-there, uid: not-there}]`,
				"spec", "template", "metadata", "ownerReferences"), message: refusedFields,
		},
		"a namespace that is held": {
			change: change(t, workNamespace, `[example.com/hold]`, "metadata", "finalizers"), message: refusedFields,
		},
		"a namespace whose content is held": {
			change: change(t, workNamespace, `[example.com/hold]`, "spec", "finalizers"), message: refusedFields,
		},
		"pods that are held": {
			change:  change(t, workAgent, `[example.com/hold]`, "spec", "template", "metadata", "finalizers"),
			message: refusedFields,
		},
		"data": {
			change: add(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-inventory-cleanup, namespace: agents},
				data: {addonUID: u}}`),
			message: refusedFields,
		},
		"the marker": {
			change: add(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-inventory-cleanup, namespace: agents}}`),
		},
		"a condition that ends the work": {
			change: spec(`[{resourceIdentifier: {group: apps, resource: deployments, namespace: agents,
				name: cluster-inventory-agent}, conditionRules: [{type: CEL, condition: Complete, celExpressions: ["true"]}]}]`,
				"manifestConfigs"), message: refusedReport,
		},
		"a second namespace": {
			change: func(work *unstructured.Unstructured) {
				add(t, `{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}`)(work)
				set(t, work.Object, `[{group: "", resource: namespaces, name: agents},
					{group: "", resource: namespaces, name: theirs}]`, "spec", "deleteOption", "selectivelyOrphans", "orphaningRules")
			}, message: "only the namespaces of its agents",
		},
		"a namespace taken from another manager": {
			change:  change(t, workNamespace, `{app.kubernetes.io/managed-by: x}`, "metadata", "labels"),
			message: "label and annotate only",
		},
		"another executor": {change: spec(`{subject: {type: ServiceAccount,
			serviceAccount: {namespace: kube-system, name: admin}}}`, "executor"), message: "who applies a ManifestWork"},
		"a Pod": {change: add(t, `{apiVersion: v1, kind: Pod, metadata: {name: cluster-inventory-agent, namespace: agents}}`),
			message: "only the manifests of its agents"},
		"another Deployment": {change: change(t, workAgent, "another", "metadata", "name"),
			message: "only the manifests of its agents"},
		"a namespace of Kubernetes": {change: change(t, workAgent, "kube-system", "metadata", "namespace"),
			message: "to the namespaces of Kubernetes"},
		"the namespace of Kubernetes itself": {change: change(t, workNamespace, "kube-system", "metadata", "name"),
			message: "cluster inventory"},
		"labels for a namespace": {
			change:  change(t, workNamespace, `{pod-security.kubernetes.io/enforce: privileged}`, "metadata", "labels"),
			message: "label and annotate only",
		},
		"annotations for a namespace": {
			change:  change(t, workNamespace, `{field.cattle.io/projectId: p}`, "metadata", "annotations"),
			message: "label and annotate only",
		},
		"rights for all who may view": {
			change:  change(t, workRole, `{rbac.authorization.k8s.io/aggregate-to-view: "true"}`, "metadata", "labels"),
			message: "label and annotate only",
		},
		"a sidecar": {
			change:  change(t, workAgent, `{annotations: {sidecar.istio.io/inject: "true"}}`, "spec", "template", "metadata"),
			message: "label and annotate only",
		},
		"a namespace that is deleted with the work": {
			change: change(t, workNamespace, "prod", "metadata", "name"), message: "delete what it shares",
		},
		"everything is deleted with the work": {
			change: func(work *unstructured.Unstructured) {
				unstructured.RemoveNestedField(work.Object, "spec", "deleteOption")
			}, message: "delete what it shares",
		},
		"nothing is deleted with the work": {
			change: spec(`{propagationPolicy: Orphan}`, "deleteOption"), message: "cluster inventory",
		},
		"a second owner, which keeps the work": {change: func(work *unstructured.Unstructured) {
			owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: cluster, UID: "u"}
			work.SetOwnerReferences(append(work.GetOwnerReferences(), owner))
		}, message: "that belong to its addon"},
		"the definition of properties": {change: add(t, definition)},
		"a definition that calls a webhook": {
			change: add(t, strings.Replace(definition, "None", "Webhook", 1)), message: "change the CustomResourceDefinition",
		},
		"a definition that overwrites": {change: func(work *unstructured.Unstructured) {
			add(t, definition)(work)
			spec("[]", "manifestConfigs")(work)
		}, message: "change the CustomResourceDefinition"},
		"a definition that overwrites, kept from another namespace": {change: func(work *unstructured.Unstructured) {
			add(t, definition)(work)
			spec(`[{resourceIdentifier: {group: apiextensions.k8s.io, resource: customresourcedefinitions, namespace: x,
				name: clusterproperties.about.k8s.io}, updateStrategy: {type: CreateOnly}}]`, "manifestConfigs")(work)
		}, message: "change the CustomResourceDefinition"},
		"a second work": {
			change: named("addon-cluster-inventory-deploy-1"), message: "only the ManifestWorks of its own agents",
		},
		"a condition about an object": {change: spec(`[{resourceIdentifier: {group: apps, resource: deployments,
			namespace: agents, name: cluster-inventory-agent}, conditionRules: [{type: CEL, condition: Tells, celExpressions: ["true"],
			messageExpression: string(object.metadata)}]}]`, "manifestConfigs"), message: refusedReport},
		"the agent's network policy": {change: add(t, policyFor("cluster-inventory-agent", "cluster-inventory-agent"))},
		"a network policy of another name": {
			change: add(t, policyFor("another", "another")), message: "only the manifests of its agents",
		},
		"a network policy for other pods": {
			change:  add(t, policyFor("cluster-inventory-agent", "database")),
			message: "NetworkPolicies only for its agents",
		},
		"a network policy for all pods": {
			change: add(t, strings.Replace(policyFor("cluster-inventory-agent", ""),
				`{matchLabels: {app.kubernetes.io/name: ""}}`, "{}", 1)),
			message: "NetworkPolicies only for its agents",
		},
		"the right to read Secrets": {
			change:  change(t, workRole, `[{apiGroups: [""], resources: [secrets], verbs: [get]}]`, "rules"),
			message: "no rights but those that they need",
		},
		"more rights on what it needs": {
			change:  change(t, workRole, `[{apiGroups: [about.k8s.io], resources: [clusterproperties], verbs: ["*"]}]`, "rules"),
			message: "no rights but those that they need",
		},
		"more rights on events": {
			change:  change(t, workRole, `[{apiGroups: [events.k8s.io], resources: [events], verbs: [create, list]}]`, "rules"),
			message: "no rights but those that they need",
		},
		"rights of other roles": {
			change: change(t, workRole, `{clusterRoleSelectors: [{}]}`, "aggregationRule"), message: refusedFields,
		},
		"the role cluster-admin": {
			change: change(t, workBinding, "cluster-admin", "roleRef", "name"), message: "to its agents alone",
		},
		"its rights for another client": {
			change: change(t, workBinding, `[{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:authenticated"}]`,
				"subjects"),
			message: "to its agents alone",
		},
		"another image":                     {change: pull(repository + "-x:v1"), message: refusedImage},
		"its image from another registry":   {change: pull("evil.example.com/" + imagePath + ":v1"), message: refusedImage},
		"another version of its image":      {change: pull(repository + ":v0"), message: refusedImage},
		"any version":                       {change: pull(repository), message: refusedImage},
		"its image by digest":               {change: pull(repository + "@" + oldDigest)},
		"its digest, with another's tag":    {change: pull(repository + ":v1@" + oldDigest), message: refusedImage},
		"its tag, as if it were a digest":   {change: pull(repository + "@v1"), message: refusedImage},
		"another tag, and its as a digest":  {change: pull(repository + ":evil@v1"), message: refusedImage},
		"its digest, as if it were a tag":   {change: pull(repository + ":" + oldDigest), message: refusedImage},
		"a tag alone":                       {change: pull("v1"), message: refusedImage},
		"a tag without a repository":        {change: pull("':v1'"), message: refusedImage},
		"an image of a registry's port":     {change: pull(repository + ":5000/evil/x"), message: refusedImage},
		"an image of a port, with its tag":  {change: pull(repository + ":5000/evil/x:v1"), message: refusedImage},
		"its tag from a mirror":             {change: pull(mirror + "/x:v1")},
		"its digest from a mirror":          {change: pull(mirror + "/x/y_z@" + oldDigest)},
		"its tag from the mirror itself":    {change: pull(mirror + ":v1")},
		"another tag from a mirror":         {change: pull(mirror + "/x:v0"), message: refusedImage},
		"another's digest from a mirror":    {change: pull(mirror + "/x:v1@" + oldDigest), message: refusedImage},
		"its tag as a digest from a mirror": {change: pull(mirror + "/x@v1"), message: refusedImage},
		"a mirror's neighbor":               {change: pull(mirror + "-x/x:v1"), message: refusedImage},
		"a port in a mirror":                {change: pull(mirror + "/x:5000/y:v1"), message: refusedImage},
		"no image of a mirror":              {change: pull(mirror + "/..//x:v1"), message: refusedImage},
		"another digest of its image": {
			change: pull(repository + "@" + strings.ReplaceAll(oldDigest, "0", "1")), message: refusedImage,
		},

		"a kubeconfig in the place of another": {
			change: args("--hub-kubeconfig=/var/run/managed/kubeconfig"), message: refusedArguments,
		},
		"a kubeconfig for a cluster that it runs on": {
			change: args("--kubeconfig=/var/run/managed/kubeconfig"), message: refusedArguments,
		},
		"an agent that is not hosted, as if it were": {change: args("--hosted"), message: refusedArguments},
		"another port":                     {change: args("--metrics-bind-address=:8080"), message: refusedArguments},
		"all addresses":                    {change: args(`"--health-probe-bind-address=:8081"`), message: refusedArguments},
		"another cluster's name":           {change: args("--cluster-name=another"), message: refusedArguments},
		"another namespace of the agent":   {change: args("--install-namespace=another"), message: refusedArguments},
		"an argument and its value":        {change: args("--hub-kubeconfig, /etc/passwd"), message: refusedArguments},
		"more than a number":               {change: args(`"-v=1\n"`), message: refusedArguments},
		"a clean-up in place of the agent": {change: changeContainer(t, "[cleanup]", "args"), message: refusedArguments},
		"a mount elsewhere": {
			change:  mount("[{name: hub-kubeconfig, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]"),
			message: refusedArguments,
		},
		"a mount in the place of another": {
			change: mount("[{name: hub-kubeconfig, mountPath: /var/run/managed, readOnly: true}]"), message: refusedArguments,
		},
		"a mount that it may write": {
			change: mount("[{name: hub-kubeconfig, mountPath: /var/run/hub, readOnly: false}]"), message: refusedArguments,
		},
		"a part of a mount": {
			change:  mount("[{name: hub-kubeconfig, mountPath: /var/run/hub, readOnly: true, subPath: a}]"),
			message: refusedArguments,
		},
		"another own address": {
			changeContainer(t, "[{name: POD_IP, value: 192.0.2.1}]", "env"), "only its agents' program",
		},
		"another field of its pod": {
			changeContainer(t, "[{name: POD_IP, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]", "env"),
			"only its agents' program",
		},
		"another variable": {
			changeContainer(t, "[{name: SSL_CERT_FILE, value: /var/run/hub/ca}]", "env"), "only its agents' program",
		},
		"another own port": {
			changeContainer(t, "[{name: health, containerPort: 9090}]", "ports"), "only its agents' program",
		},
		"a probe of another host": {
			change: probe("{httpGet: {host: 192.0.2.1, path: /healthz, port: 8081}}"), message: refusedProbes,
		},
		"a probe by TLS": {change: probe("{httpGet: {scheme: HTTPS, path: /healthz, port: 8081}}"), message: refusedProbes},
		"a probe with a header": {
			change: probe("{httpGet: {httpHeaders: [{name: Host, value: a}], path: /healthz, port: 8081}}"), message: refusedProbes,
		},
		"a probe of another port":   {change: probe("{httpGet: {path: /healthz, port: 10250}}"), message: refusedProbes},
		"a probe of a named port":   {change: probe("{httpGet: {path: /healthz, port: health}}"), message: refusedProbes},
		"a probe of another path":   {change: probe("{httpGet: {path: /debug/pprof, port: 8081}}"), message: refusedProbes},
		"a probe of a connection":   {change: probe("{tcpSocket: {host: 192.0.2.1, port: 22}}"), message: refusedProbes},
		"a probe by gRPC":           {change: probe("{grpc: {port: 8081}}"), message: refusedProbes},
		"a probe that is a program": {change: probe("{exec: {command: [/agent, cleanup]}}"), message: refusedProbes},
		"a startup probe": {
			changeContainer(t, "{tcpSocket: {host: 192.0.2.1, port: 22}}", "startupProbe"), "only its agents' program",
		},
		"pods that others' Services select": {
			change:  change(t, workAgent, `{app.kubernetes.io/name: database}`, "spec", "template", "metadata", "labels"),
			message: "label and annotate only",
		},
		"an agent in each of two namespaces": {change: add(t, `{apiVersion: apps/v1, kind: Deployment,
			metadata: {name: cluster-inventory-agent, namespace: b}, spec: {template: {spec: {
			serviceAccountName: cluster-inventory-agent,
			securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: agent,
			image: "`+repository+`:v1", command: [/agent], securityContext:
			{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}}]}}}}`),
			message: "only one pod of each"},
		"a clean-up": {change: add(t, cleanupJob), message: "only one pod of each"},
		"the kubeconfig of a hosted cluster": {
			pod(managedVolume, "volumes"), "as restricted pods",
		},
		"that kubeconfig, as if it were the hub's": {
			pod(`[{name: hub-kubeconfig, secret: {secretName: cluster-inventory-managed-kubeconfig}}]`, "volumes"),
			"as restricted pods",
		},
		"a file of a Secret under another name": {
			pod(`[{name: hub-kubeconfig, secret: {secretName: cluster-inventory-hub-kubeconfig,
				items: [{key: a, path: b}]}}]`, "volumes"), "as restricted pods",
		},
		"another program":  {change: changeContainer(t, "[/cp-creds]", "command"), message: "only its agents' program"},
		"another volume":   {change: pod(`[{name: host, hostPath: {path: /}}]`, "volumes"), message: "as restricted pods"},
		"another Secret":   {change: pod(`[{name: s, secret: {secretName: other}}]`, "volumes"), message: "as restricted pods"},
		"the host network": {change: pod("true", "hostNetwork"), message: "as restricted pods"},
		"another account":  {change: pod("default", "serviceAccountName"), message: "as restricted pods"},
		"another kernel":   {pod("5", "priority"), "as restricted pods"},
		"its own resolver": {pod(`{nameservers: [192.0.2.1]}`, "dnsConfig"), "as restricted pods"},
		"its own user": {
			pod(`{runAsNonRoot: true, runAsUser: 5, fsGroup: 6, seccompProfile: {type: RuntimeDefault}}`, "securityContext"), "",
		},
		"the user root": {
			pod(`{runAsNonRoot: true, runAsUser: 0, seccompProfile: {type: RuntimeDefault}}`, "securityContext"),
			"as restricted pods",
		},
		"many pods": {change: change(t, workAgent, "1000", "spec", "replicas"), message: "only one pod of each"},
		"a finalizer that holds the work": {change: func(work *unstructured.Unstructured) {
			work.SetFinalizers([]string{"example.com/hold"})
		}, message: "may add no finalizers"},
		"more groups": {
			pod(`{runAsNonRoot: true, supplementalGroups: [0], seccompProfile: {type: RuntimeDefault}}`, "securityContext"),
			"as restricted pods",
		},
		"no seccomp profile": {
			pod(`{runAsNonRoot: true, seccompProfile: {type: Unconfined}}`, "securityContext"), "as restricted pods",
		},
		"a port of the node": {changeContainer(t, `[{containerPort: 8081, hostPort: 8081}]`, "ports"), "its agents' program"},
		"one more container": {
			change:  pod(`[{name: a, image: example.com/a, command: [/agent]}]`, "initContainers"),
			message: "as restricted pods",
		},
		"privileges": {
			change: changeContainer(t, "true", "securityContext", "privileged"), message: "without privileges",
		},
		"variables from a Secret": {
			change:  changeContainer(t, `[{name: POD_IP, valueFrom: {secretKeyRef: {name: s, key: k}}}]`, "env"),
			message: "only its agents' program",
		},
		"a command when it starts": {
			change:  changeContainer(t, `{postStart: {exec: {command: [/agent, cleanup]}}}`, "lifecycle"),
			message: "only its agents' program",
		},
		"rights for a hosted agent": {
			change: named("addon-cluster-inventory-deploy-hosting-guest-0"), message: "may give hosted agents no rights",
		},
	}
}

// cleanupJob is the clean-up Job as the manager writes it.
const cleanupJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: cluster-inventory-cleanup, namespace: agents,
	annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}},
	spec: {backoffLimit: 4, activeDeadlineSeconds: 180, ttlSecondsAfterFinished: 180, template: {spec: {
	serviceAccountName: cluster-inventory-cleanup, restartPolicy: Never,
	securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: cleanup,
	image: "quay.io/open-cluster-management/cluster-inventory-addon:v1", command: [/agent],
	args: [cleanup, --addon-uid=u, --install-namespace=agents, -v=0], securityContext:
	{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}}]}}}}`

// managedVolume are the volumes of a hosted agent.
const managedVolume = `[{name: hub-kubeconfig, secret: {secretName: cluster-inventory-hub-kubeconfig}},
	{name: managed-kubeconfig, secret: {secretName: cluster-inventory-managed-kubeconfig, optional: true}}]`

// policyFor is a NetworkPolicy that lets pods with a name connect to all, and all to them.
func policyFor(name, pods string) string {
	return fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy,
		metadata: {name: %s, namespace: agents}, spec: {
		podSelector: {matchLabels: {app.kubernetes.io/name: %q}}, ingress: [{}], egress: [{}]}}`, name, pods)
}

// checkAttempt checks that something was refused in these words, or allowed if there are none.
func checkAttempt(t *testing.T, err error, message string) {
	t.Helper()
	switch {
	case message == "" && err != nil:
		t.Errorf("the manager gets %v", err)
	case message != "" && !isRefused(err, message):
		t.Errorf("the manager gets %v, want a refusal with %q", err, message)
	}
}

// A Secret of another type would make Kubernetes put any service account's token into it.
func testTheManagerMayWriteOnlyCopies(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	p.eventuallyBinds(team, own(tokenTarget))
	p.EventuallyAllowed(server.User(t, hubtest.User), true, authorizationv1.ResourceAttributes{
		Namespace: team, Verb: "create", Resource: "secrets",
	})

	copied := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: team, Name: "c1-reader",
				Labels: map[string]string{
					"app.kubernetes.io/managed-by":                    "cluster-inventory-addon",
					"inventory.open-cluster-management.io/credential": "true",
				},
				Annotations: map[string]string{
					"inventory.open-cluster-management.io/source-cluster": "c1",
					"inventory.open-cluster-management.io/source-account": "reader",
				},
			},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{"token": []byte("t"), "ca.crt": []byte("c")},
		}
		change(secret)
		return secret
	}
	const (
		onlyCopies = "may write only Secrets that are copies of tokens"
		onlyItsOwn = "may give a copy only its own"
	)
	p.eventuallyRefused(copied(func(s *corev1.Secret) { s.Labels = nil }), onlyCopies)
	for name, attempt := range map[string]struct {
		change  func(*corev1.Secret)
		message string
	}{
		"a copy": {func(*corev1.Secret) {}, ""},
		"the token of a service account of the namespace": {func(s *corev1.Secret) {
			s.Type, s.Data = corev1.SecretTypeServiceAccountToken, nil
			s.Annotations["kubernetes.io/service-account.name"] = "default"
		}, onlyCopies},
		"a Secret that is no copy":           {func(s *corev1.Secret) { s.Labels = nil }, onlyCopies},
		"a copy without an account":          {func(s *corev1.Secret) { s.Annotations = nil }, onlyCopies},
		"a copy under another's name":        {func(s *corev1.Secret) { s.Name = "passwords" }, onlyCopies},
		"a copy whose name the server makes": {func(s *corev1.Secret) { s.Name, s.GenerateName = "", "c1-reader" }, "cluster-inventory-secrets"},
		"a copy with something else":         {func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("k") }, "only a token and a CA"},
		"a copy that is held":                {func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} }, "no finalizers"},
		"a copy that another program finds":  {func(s *corev1.Secret) { s.Labels["argocd.argoproj.io/secret-type"] = "cluster" }, onlyItsOwn},
		"a copy that a webhook labels":       {func(s *corev1.Secret) { s.Labels["example.com/cost-center"] = "x" }, ""},
		"a copy that another program copies": {func(s *corev1.Secret) { s.Annotations["example.com/copy-to"] = "all" }, onlyItsOwn},
		"a copy that is deleted with something else": {func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "u"}}
		}, onlyItsOwn},
		"a copy with something else, as text": {func(s *corev1.Secret) { s.StringData = map[string]string{"a": "b"} }, "only a token and a CA"},
	} {
		t.Run(name, func(t *testing.T) {
			checkAttempt(t, p.manager.Create(t.Context(), copied(attempt.change), client.DryRunAll), attempt.message)
		})
	}

	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "theirs"}, Data: map[string][]byte{"password": []byte("p")},
	}
	upstreams := theirs.DeepCopy()
	upstreams.Name, upstreams.Labels = "c2-reader", map[string]string{
		"authentication.open-cluster-management.io/synced-from": "c2-reader",
	}
	upstreams.Data = map[string][]byte{"token": []byte("t")}
	p.MustCreate(theirs, upstreams)
	const onlyOurs = "may change and delete only Secrets that are copies of tokens"
	asCopy := func(name string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{
			"labels":{"app.kubernetes.io/managed-by":"cluster-inventory-addon",
				"inventory.open-cluster-management.io/credential":"true"},
			"annotations":{"inventory.open-cluster-management.io/source-cluster":"`+name+`",
				"inventory.open-cluster-management.io/source-account":"reader"}}}`))
	}
	t.Run("marking another's Secret", func(t *testing.T) {
		checkAttempt(t, p.manager.Patch(t.Context(), theirs.DeepCopy(), asCopy("c1")), "copies of tokens")
	})
	t.Run("deleting another's Secret", func(t *testing.T) {
		checkAttempt(t, p.manager.Delete(t.Context(), theirs), onlyOurs)
	})
	t.Run("deleting what upstream's syncer made", func(t *testing.T) {
		checkAttempt(t, p.manager.Delete(t.Context(), upstreams), onlyOurs)
	})
	t.Run("taking over what upstream's syncer made", func(t *testing.T) {
		checkAttempt(t, p.manager.Patch(t.Context(), upstreams, asCopy("c2")), "")
	})
	t.Run("changing what a tenant says of a copy", func(t *testing.T) {
		secret := copied(func(*corev1.Secret) {})
		apitest.Must(t, p.manager.Create(t.Context(), secret))
		p.MustMerge(secret, `{"metadata":{"labels":{"example.com/copy-to":"none"}}}`)
		changed := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/copy-to":"all"}}}`))
		checkAttempt(t, p.manager.Patch(t.Context(), secret.DeepCopy(), changed), onlyItsOwn)
		checkAttempt(t, p.manager.Delete(t.Context(), secret), "")
		p.EventuallyGone(secret)
	})
	// Tenants' changes of a copy do not prevent the manager from withdrawing it.
	for name, change := range map[string]string{
		"its labels are gone":      `{"metadata":{"labels":null}}`,
		"its annotations are gone": `{"metadata":{"annotations":null}}`,
		"all of it is gone":        `{"metadata":{"labels":null,"annotations":null}}`,
		"it is held":               `{"metadata":{"finalizers":["example.com/hold"],"labels":null,"annotations":null}}`,
		"it has more in it":        `{"metadata":{"finalizers":["example.com/hold"]},"data":{"more":"bQ=="}}`,
		"it has many owners": `{"metadata":{"finalizers":["example.com/hold"],"ownerReferences":[` + many(5000, func(n int) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"%d"}`, n)
		}) + `]}}`,
		"it has many labels and annotations": `{"metadata":{"finalizers":["example.com/hold"],` +
			`"labels":{` + many(5000, func(n int) string { return fmt.Sprintf(`"l%d":"x"`, n) }) + `},` +
			`"annotations":{` + many(5000, func(n int) string { return fmt.Sprintf(`"a%d":"x"`, n) }) + `}}}`,
	} {
		t.Run("a copy is withdrawn when "+name, func(t *testing.T) {
			secret := copied(func(*corev1.Secret) {})
			apitest.Must(t, p.manager.Create(t.Context(), secret, client.FieldOwner("hub.credentials")))
			p.MustMerge(secret, change)
			if len(secret.Finalizers) > 0 {
				release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				checkAttempt(t, p.manager.Patch(t.Context(), secret, release), "")
			}
			checkAttempt(t, p.manager.Delete(t.Context(), secret), "")
			p.EventuallyGone(secret)
		})
	}
	t.Run("what has neither a mark nor a record of who wrote it", func(t *testing.T) {
		secret := copied(func(*corev1.Secret) {})
		apitest.Must(t, p.manager.Create(t.Context(), secret, client.FieldOwner("hub.credentials")))
		p.MustMerge(secret, `{"metadata":{"labels":null,"annotations":null,"managedFields":[{}]}}`)
		checkAttempt(t, p.manager.Delete(t.Context(), secret), "only Secrets that are copies of tokens")
		p.MustDelete(secret)
	})
}

// many joins n texts.
func many(n int, text func(n int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(i)
	}
	return strings.Join(texts, ",")
}

// Consumers send their tokens to the server that a profile names.
func testTheManagerMaySendConsumersOnlyToClusterProxy(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	foreign := ocmtest.OurProfile(team, "foreign")
	foreign.Spec.ClusterManager.Name = "another-manager"
	const onlyOurs = "only ClusterProfiles of Open Cluster Management"
	p.eventuallyRefused(foreign, onlyOurs)
	p.MustCreate(foreign)
	checkAttempt(t, p.manager.Delete(t.Context(), foreign), onlyOurs)
	status := func(server string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"status":{"accessProviders":[
			{"name":"open-cluster-management","cluster":{"server":"`+server+`"}}]}}`))
	}
	checkAttempt(t, p.manager.Status().Patch(t.Context(), foreign.DeepCopy(), status("https://a/foreign")), onlyOurs)

	const another = `{"spec":{"clusterManager":{"name":"open-cluster-management"}}}`
	takeover := client.RawPatch(types.MergePatchType, []byte(another))
	if err := p.manager.Patch(t.Context(), foreign.DeepCopy(), takeover); err == nil {
		t.Error("the manager may take another's profile over")
	}

	profile := ocmtest.OurProfile(team, "c1")
	apitest.Must(t, p.manager.Create(t.Context(), profile))
	p.CleanUp(profile)
	owned := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`))
	checkAttempt(t, p.manager.Patch(t.Context(), profile.DeepCopy(), owned), "may add no owners")
	const onlyProxy = "only to cluster-proxy's user server"
	proxy := "https://cluster-proxy-addon-user.open-cluster-management-addon"
	for server, message := range map[string]string{
		proxy + ":9092/c1":                         "",
		proxy + ":9092/c2":                         onlyProxy,
		proxy + ".evil:9092/c1":                    onlyProxy,
		proxy + ":9092@evil/c1":                    onlyProxy,
		"https://evil.example.com/c1":              onlyProxy,
		"http" + proxy[len("https"):] + ":9092/c1": onlyProxy,
	} {
		t.Run(server, func(t *testing.T) {
			err := p.manager.Status().Patch(t.Context(), profile.DeepCopy(), status(server), client.DryRunAll)
			checkAttempt(t, err, message)
		})
	}
	for name, cluster := range map[string]string{
		"a proxy on the way": `"proxy-url":"http://evil.example.com"`,
		"no verification":    `"insecure-skip-tls-verify":true`,
		"the token of another cluster": `"extensions":[{"name":"client.authentication.k8s.io/exec",
			"extension":{"clusterName":"c2"}}]`,
		"arguments of the plugin": `"extensions":[{"name":"multicluster.x-k8s.io/clusterprofiles/auth/exec/additional-args",
			"extension":{"args":["--evil"]}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"accessProviders":[
				{"name":"open-cluster-management","cluster":{"server":"`+proxy+`:9092/c1",`+cluster+`}}]}}`))
			checkAttempt(t, p.manager.Status().Patch(t.Context(), profile.DeepCopy(), patch, client.DryRunAll), onlyProxy)
		})
	}
	t.Run("the deprecated list", func(t *testing.T) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"credentialProviders":[
			{"name":"open-cluster-management","cluster":{"server":"https://evil.example.com"}}]}}`))
		err := p.manager.Status().Patch(t.Context(), profile.DeepCopy(), patch, client.DryRunAll)
		checkAttempt(t, err, "deprecated list")
	})
	t.Run("a server that is there already stays", func(t *testing.T) {
		p.MustMerge(profile, `{"metadata":{"labels":{"a":"b"}}}`)
		apitest.EditStatus(p, profile, func(c *inventoryv1alpha1.ClusterProfile) {
			c.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management"}}
			c.Status.AccessProviders[0].Cluster.Server = "https://proxy.example.com/c1"
		})
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"version":{"kubernetes":"v1.36.0"}}}`))
		checkAttempt(t, p.manager.Status().Patch(t.Context(), profile.DeepCopy(), patch), "")
	})
}

// Tenants read the events of their namespaces.
func testTheManagerMayCreateOnlyItsEvents(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	about := func(kind string) *eventsv1.Event {
		regarding := corev1.ObjectReference{
			APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: kind, Namespace: team, Name: "c1",
		}
		return kube.NewEvent(regarding, corev1.EventTypeWarning, "InvalidSource", "Copy",
			"Account reader is not copied: its token has expired.", "hub.credentials", "hub.credentials", time.Now())
	}
	const onlyReported = "only about what it reports on"
	token := "eyJ" + strings.Repeat("a", 40)
	p.eventuallyRefused(about("Secret"), onlyReported)
	for name, attempt := range map[string]struct {
		change  func(*eventsv1.Event)
		message string
	}{
		"its own":                  {func(*eventsv1.Event) {}, ""},
		"about a Pod":              {func(e *eventsv1.Event) { e.Regarding.Kind = "Pod" }, onlyReported},
		"about nothing":            {func(e *eventsv1.Event) { e.Regarding.Kind = "" }, onlyReported},
		"in another client's name": {func(e *eventsv1.Event) { e.ReportingController = "kubelet" }, onlyReported},
		"in another namespace":     {func(e *eventsv1.Event) { e.Namespace = "default" }, onlyReported},
		"with a token":             {func(e *eventsv1.Event) { e.Note = "x" + token + "." }, "no token into an event"},
		"with a token as action":   {func(e *eventsv1.Event) { e.Action = token }, "no token into an event"},
		"annotated":                {func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": token} }, "no token into an event"},
		"annotated by a webhook": {func(e *eventsv1.Event) {
			e.Annotations = map[string]string{"example.com/cost-center": "7"}
		}, ""},
		"with a token in a webhook's annotation": {func(e *eventsv1.Event) {
			e.Annotations = map[string]string{"example.com/cost-center": token}
		}, "no token into an event"},
		"that is held": {func(e *eventsv1.Event) { e.Finalizers = []string{"example.com/hold"} }, "no finalizers"},
		"that is deleted with another": {func(e *eventsv1.Event) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
		}, "no owners"},
	} {
		t.Run(name, func(t *testing.T) {
			event := about("ClusterProfile")
			attempt.change(event)
			checkAttempt(t, p.manager.Create(t.Context(), event, client.DryRunAll), attempt.message)
		})
	}
}

// What an administrator wants of an addon is in its spec, which configuration it has in its
// status, and Kubernetes deletes one whose owner does not exist.
func testTheManagerMayChangeOnlyItsPartOfAnAddon(t *testing.T) {
	p := install(t)
	addon := ocmtest.Addon("")
	addon.Labels, addon.Finalizers = map[string]string{"a": "b"}, []string{"example.com/hold"}
	cluster := p.namespace("cluster1", addon)
	apitest.EditStatus(p, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			ConfigGroupResource: agentRevisions,
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Name: "chosen"}, SpecHash: "before",
			},
		}}
	})
	const (
		spec       = "may not change the spec of an addon"
		labels     = "may not change labels"
		notes      = "may not change annotations"
		owners     = "may not change the owners"
		finalizers = "only the finalizers of a clean-up"
		subject    = "request only the certificates of its agents"
		config     = "may not choose the configuration"
	)
	patch := func(body string) error {
		raw := client.RawPatch(types.MergePatchType, []byte(body))
		return p.manager.Patch(t.Context(), addon.DeepCopy(), raw, client.DryRunAll)
	}
	const configs = `{"spec":{"configs":[{"group":"inventory.open-cluster-management.io","resource":"agentrevisions","name":"x"}]}}`
	p.Eventually("the policy refuses", func() string {
		err := patch(configs)
		if isRefused(err, spec) {
			return ""
		}
		return "the answer: " + errorText(err)
	})
	for body, message := range map[string]string{
		`{"metadata":{"finalizers":["example.com/hold","addon.open-cluster-management.io/addon-pre-delete"]}}`:           "",
		`{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`:                                            finalizers,
		`{"metadata":{"finalizers":["example.com/hold"]}}`:                                                               "",
		`{"metadata":{"finalizers":["cluster.open-cluster-management.io/others"]}}`:                                      finalizers,
		`{"metadata":{"finalizers":null}}`:                                                                               finalizers,
		`{"metadata":{"labels":null}}`:                                                                                   labels,
		`{"metadata":{"labels":{"example.com/cost-center":"x"}}}`:                                                        "",
		`{"metadata":{"annotations":{"example.com/cost-center":"x"}}}`:                                                   "",
		`{"metadata":{"annotations":{"addon.open-cluster-management.io/hosting-cluster-name":"c2"}}}`:                    notes,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"not-there","uid":"not-there"}]}}`: owners,
	} {
		t.Run(body, func(t *testing.T) { checkAttempt(t, patch(body), message) })
	}
	update := addon.DeepCopy()
	update.Spec.Configs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "a", Name: "b"},
	}}
	checkAttempt(t, p.manager.Update(t.Context(), update, client.DryRunAll), spec)

	user := "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory"
	registration := func(user, group string) string {
		return fmt.Sprintf(`{"status":{"registrations":[{"type":"kubeClient","kubeClient":{
			"driver":"csr","subject":{"user":%q,"groups":[%q]}}}]}}`, user, group)
	}
	reference := func(name string) string {
		return fmt.Sprintf(`{"status":{"configReferences":[{"group":%q,"resource":%q,"lastObservedGeneration":2,
			"desiredConfig":{"name":%q,"specHash":"after"}}]}}`, agentRevisions.Group, agentRevisions.Resource, name)
	}
	for name, attempt := range map[string]struct{ status, message string }{
		"a condition": {`{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"",
			"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, ""},
		"its agent's certificate":          {registration(user, "system:authenticated"), ""},
		"a certificate for another client": {registration("admin", "system:authenticated"), subject},
		"an agent's of another cluster":    {registration(strings.Replace(user, cluster, "c2", 1), "system:authenticated"), subject},
		"a certificate for another group":  {registration(user, "admins"), subject},
		"a certificate of another signer": {`{"status":{"registrations":[{"type":"customSigner",
			"customSigner":{"signerName":"example.com/signer","subject":{"user":"admin"}}}]}}`, subject},
		"the agent's namespace": {`{"status":{"namespace":"agents"}}`, ""},
		"a namespace of Kubernetes for the agent and its key": {
			`{"status":{"namespace":"kube-system"}}`, "in the namespaces of Kubernetes",
		},
		"the hash of the configuration": {reference("chosen"), ""},
		"another configuration":         {reference("another"), config},
		"no configuration":              {`{"status":{"configReferences":[]}}`, config},
	} {
		t.Run(name, func(t *testing.T) {
			raw := client.RawPatch(types.MergePatchType, []byte(attempt.status))
			err := p.manager.Status().Patch(t.Context(), addon.DeepCopy(), raw, client.DryRunAll)
			checkAttempt(t, err, attempt.message)
		})
	}

	// A spoke may write the status of its addon. However much that is, the clean-up ends.
	flood := fmt.Sprintf(`{"status":{"registrations":[%s],"configReferences":[%s]}}`,
		many(3000, func(n int) string {
			return fmt.Sprintf(`{"type":"customSigner","customSigner":{"signerName":"example.com/%d"}}`, n)
		}),
		many(3000, func(n int) string {
			return fmt.Sprintf(`{"group":"example.com","resource":"a","desiredConfig":{"name":"%d"}}`, n)
		}))
	apitest.Must(t, p.Status().Patch(t.Context(), addon.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(flood))))
	for _, body := range []string{
		`{"metadata":{"finalizers":["example.com/hold","addon.open-cluster-management.io/addon-pre-delete"]}}`,
		`{"metadata":{"finalizers":["example.com/hold"]}}`,
	} {
		raw := client.RawPatch(types.MergePatchType, []byte(body))
		checkAttempt(t, p.manager.Patch(t.Context(), addon.DeepCopy(), raw), "")
	}
	repair := client.RawPatch(types.MergePatchType, []byte(registration(user, "system:authenticated")))
	checkAttempt(t, p.manager.Status().Patch(t.Context(), addon.DeepCopy(), repair), "")

	// The chart installs the one of this name, and OCM fills its status in.
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	before := definition.DeepCopy()
	p.MustGet(before)
	apitest.EditStatus(p, definition, func(a *addonv1beta1.ClusterManagementAddOn) {
		reference := addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "chosen"}, SpecHash: "before"}
		a.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
			ConfigGroupResource: agentRevisions, DesiredConfig: reference.DeepCopy(),
		}}
		a.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
			PlacementRef: addonv1beta1.PlacementRef{Namespace: "a", Name: "b"},
			ConfigReferences: []addonv1beta1.InstallConfigReference{{
				ConfigGroupResource: agentRevisions, DesiredConfig: reference.DeepCopy(),
			}},
		}}
	})
	t.Cleanup(func() {
		apitest.EditStatus(p, definition, func(a *addonv1beta1.ClusterManagementAddOn) { a.Status = before.Status })
	})
	for name, attempt := range map[string]struct {
		change  func(*addonv1beta1.ClusterManagementAddOn)
		message string
	}{
		"the hashes of configurations": {func(a *addonv1beta1.ClusterManagementAddOn) {
			a.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash = "after"
			a.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.SpecHash = "after"
		}, ""},
		"another configuration of all clusters": {func(a *addonv1beta1.ClusterManagementAddOn) {
			a.Status.DefaultConfigReferences[0].DesiredConfig.Name = "another"
		}, config},
		"another configuration of a Placement": {func(a *addonv1beta1.ClusterManagementAddOn) {
			a.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.Name = "another"
		}, config},
		"another Placement": {func(a *addonv1beta1.ClusterManagementAddOn) {
			a.Status.InstallProgressions[0].Name = "another"
		}, config},
	} {
		t.Run(name, func(t *testing.T) {
			changed := definition.DeepCopy()
			attempt.change(changed)
			err := p.manager.Status().Patch(t.Context(), changed, client.MergeFrom(definition.DeepCopy()), client.DryRunAll)
			checkAttempt(t, err, attempt.message)
		})
	}
}

// A tenant that may write RoleBindings must not prevent the manager from writing its own.
func testGrantsCannotBeSquatted(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	// A tenant that administrates its namespace holds there what the grant would grant.
	administrates := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "administrates"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		},
	}
	p.MustCreate(administrates, &rbacv1.RoleBinding{
		ObjectMeta: administrates.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: administrates.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tenant"}},
	})
	tenant := apitest.NewClient(t, server.User(t, "tenant"), ocmtest.Scheme())
	for name, attempt := range map[string]struct {
		by      client.Client
		change  func(*rbacv1.RoleBinding)
		message string
	}{
		"the manager's own, by an administrator of the hub": {p, func(*rbacv1.RoleBinding) {}, ""},
		"the manager's own, by itself":                      {p.manager, func(*rbacv1.RoleBinding) {}, ""},
		"the manager's own, by a tenant": {
			tenant, func(*rbacv1.RoleBinding) {}, "only users who may bind the ClusterRole of this name",
		},
		"for another client": {
			p, func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = team }, "the cluster inventory's own",
		},
		"of another role": {p, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" }, "the cluster inventory's own"},
		"held by a finalizer": {
			p, func(b *rbacv1.RoleBinding) { b.Finalizers = []string{"example.com/hold"} }, "finalizers may not be added",
		},
		"of another name, by a tenant": {tenant, func(b *rbacv1.RoleBinding) { b.Name = "mine" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			made := own(tokenTarget)
			made.Namespace = team
			attempt.change(made)
			p.Eventually("the answer is as expected", func() string {
				err := attempt.by.Create(t.Context(), made.DeepCopy(), client.DryRunAll)
				if attempt.message == "" && err == nil || attempt.message != "" && isRefused(err, attempt.message) {
					return ""
				}
				return "the answer: " + errorText(err)
			})
		})
	}
}

// Who may delete RoleBindings ends a grant at once. Deleted after its dependants, it would stay
// as long as a finalizer holds one of those.
func testTheEndOfAGrantCannotBeDelayed(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	p.eventuallyBinds(team, own(tokenTarget))
	made := own(tokenTarget)
	made.Namespace = team
	const message = "is deleted at once"
	p.Eventually("the policy refuses", func() string {
		err := p.Delete(t.Context(), made, client.PropagationPolicy(metav1.DeletePropagationForeground), client.DryRunAll)
		if isRefused(err, message) {
			return ""
		}
		return "the answer: " + errorText(err)
	})
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		checkAttempt(t, p.Delete(t.Context(), made, client.PropagationPolicy(policy)), message)
		err := p.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(team), client.PropagationPolicy(policy))
		checkAttempt(t, err, message)
	}
	owned := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`))
	checkAttempt(t, p.Patch(t.Context(), made.DeepCopy(), owned), "has no owner")
	checkAttempt(t, p.manager.Delete(t.Context(), made), "")
	p.EventuallyGone(made)
}

// Where a tenant administrates its namespace, it must not take from the manager what it needs to
// withdraw a copy, nor hide that there may be one.
func testGrantsCannotBeTaken(t *testing.T) {
	p := install(t)
	team, cluster := p.namespace("team", binding()), p.namespace("cluster1", ocmtest.Addon(""))
	grants := map[string]*rbacv1.RoleBinding{team: own(tokenTarget), cluster: own(tokenSource)}
	const admin = "admin-of-a-namespace"
	tenant := apitest.NewClient(t, server.User(t, admin), ocmtest.Scheme())
	for namespace, grant := range grants {
		grant.Namespace = namespace
		grant.Labels = map[string]string{
			"app.kubernetes.io/managed-by": "cluster-inventory-addon", "inventory.open-cluster-management.io/credential": "true",
		}
		p.eventuallyBinds(namespace, grant)
		administrates := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "administrates"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
				{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"*"}},
			},
		}
		p.MustCreate(administrates, &rbacv1.RoleBinding{
			ObjectMeta: administrates.ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: administrates.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: admin}},
		})
		p.EventuallyAllowed(server.User(t, admin), true, authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: rbacv1.GroupName, Verb: "delete", Resource: "rolebindings",
		})
		const labels = "the labels that identify RoleBindings"
		for patch, message := range map[string]string{
			`{"metadata":{"labels":null}}`:                                                        labels,
			`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`:                       labels,
			`{"metadata":{"labels":{"inventory.open-cluster-management.io/credential":"false"}}}`: labels,
			`{"metadata":{"labels":{"theirs":"x"},"annotations":{"theirs":"x"}}}`:                 "",
			`{"metadata":{"labels":{"theirs":null},"annotations":null}}`:                          "",
			`{"metadata":{"labels":{"inventory.open-cluster-management.io/credential":"true"}}}`:  "",
		} {
			merge := client.RawPatch(types.MergePatchType, []byte(patch))
			checkAttempt(t, tenant.Patch(t.Context(), grant.DeepCopy(), merge), message)
			checkAttempt(t, p.Patch(t.Context(), grant.DeepCopy(), merge), message) // nor by mistake
		}
		const deletion = "may create or delete the RoleBinding"
		checkAttempt(t, tenant.Delete(t.Context(), grant.DeepCopy()), deletion)
		err := tenant.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(namespace),
			client.MatchingFields{"metadata.name": grant.Name})
		checkAttempt(t, err, deletion)
		checkAttempt(t, p.Delete(t.Context(), grant.DeepCopy(), client.DryRunAll), "")
		checkAttempt(t, p.manager.Delete(t.Context(), grant.DeepCopy(), client.DryRunAll), "")
	}

	// Nothing holds a namespace that is being deleted, no matter as whom Kubernetes' controller
	// runs.
	p.MustDelete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	p.Eventually("the grant may be deleted", func() string {
		if err := tenant.Delete(t.Context(), grants[team].DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
	p.EventuallyGone(grants[team])
}

func errorText(err error) string {
	if err == nil {
		return "it is allowed"
	}
	return err.Error()
}
