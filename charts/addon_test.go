package charts

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

// shell is a hub on which the manager runs with the rights that the chart gives
// it. The test plays the spokes and OCM's controllers.
type shell struct {
	*installed
	wire    *apitest.Wire // what the manager sends
	program *hubtest.Manager

	revision addonv1beta1.ConfigReference // that clusters which join get
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{installed: install(t)}
	s.revision = s.agents("quay.io/open-cluster-management/cluster-inventory-addon:v1")
	s.start()
	return s
}

// start runs another manager, as after a restart, with more flags.
func (s *shell) start(flags ...string) {
	s.T.Helper()
	if s.program != nil {
		s.program.Stop()
	}
	s.wire = &apitest.Wire{}
	s.program = hubtest.Start(s.T, s.wire.Proxy(s.T, server.User(s.T, hubtest.User)),
		append(flags, "--cleanup-timeout=1s")...)
}

// agents creates an AgentRevision, and returns the reference of a cluster that should have
// it.
func (s *shell) agents(image string) addonv1beta1.ConfigReference {
	s.T.Helper()
	return s.agentsWith(map[string]any{
		"manifests": manifests.Revision, "image": image, "imagePullPolicy": "IfNotPresent",
		"installNamespace": "agents", "claimLimit": int64(20), "logLevel": int64(0),
	})
}

// agentsWith is agents for any spec of an AgentRevision.
func (s *shell) agentsWith(spec map[string]any) addonv1beta1.ConfigReference {
	s.T.Helper()
	revision := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	revision.SetAPIVersion("inventory.open-cluster-management.io/v1alpha1")
	revision.SetKind("AgentRevision")
	revision.SetGenerateName("revision-")
	hash, err := utils.GetSpecHash(revision)
	apitest.Must(s.T, err)
	s.MustCreate(revision)
	s.CleanUp(revision)
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: agentRevisions,
		DesiredConfig: &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()}, SpecHash: hash,
		},
	}
}

// join creates a cluster, available or not, with the addon as OCM's addon manager
// leaves it.
func (s *shell) join(available metav1.ConditionStatus) *addonv1beta1.ManagedClusterAddOn {
	s.T.Helper()
	a := ocmtest.Addon(s.Namespace("cluster", nil))
	s.joinWith(a, available)
	s.refer(a, s.revision)
	return a
}

// joinWith creates the cluster of an addon, and the addon, which gets no configuration yet.
func (s *shell) joinWith(a *addonv1beta1.ManagedClusterAddOn, available metav1.ConditionStatus) {
	s.T.Helper()
	name := a.Namespace
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	s.MustCreate(cluster)
	apitest.EditStatus(s, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions = []metav1.Condition{
			ocmtest.Condition(clusterv1.ManagedClusterConditionAvailable, string(available), "Test", ""),
		}
	})
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	s.MustGet(definition)
	a.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn",
		Name: definition.Name, UID: definition.UID, Controller: ptr.To(true),
	}}
	s.MustCreate(a)
	s.CleanUp(cluster, a)
}

// condition waits until the addon's condition has this status.
func (s *shell) condition(a *addonv1beta1.ManagedClusterAddOn, conditionType string, status metav1.ConditionStatus) {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%s is %s", conditionType, status), func() string {
		s.MustGet(a)
		if got := apimeta.FindStatusCondition(a.Status.Conditions, conditionType); got == nil || got.Status != status {
			return fmt.Sprintf("it is %+v", got)
		}
		return ""
	})
}

// work waits for a ManifestWork of the addon.
func (s *shell) work(a *addonv1beta1.ManagedClusterAddOn, name string) *workv1.ManifestWork {
	s.T.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}
	s.EventuallyExists(work)
	return work
}

// reportApplied plays the klusterlet's work agent, which reports a work as applied
// with one value of feedback.
func (s *shell) reportApplied(
	work *workv1.ManifestWork, resource workv1.ManifestResourceMeta, value workv1.FeedbackValue,
) {
	s.T.Helper()
	apitest.EditStatus(s, work, func(work *workv1.ManifestWork) {
		work.Status.Conditions = []metav1.Condition{
			ocmtest.Condition(workv1.WorkApplied, "True", "Test", ""),
			ocmtest.Condition(workv1.WorkAvailable, "True", "Test", ""),
		}
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
			ResourceMeta:    resource,
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{value}},
			Conditions:      []metav1.Condition{},
		}}
	})
}

// reportReady reports so many ready Pods of the agent.
func (s *shell) reportReady(a *addonv1beta1.ManagedClusterAddOn, pods int64) {
	s.T.Helper()
	s.reportApplied(s.work(a, "addon-cluster-inventory-deploy-0"),
		workv1.ManifestResourceMeta{
			Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
			Namespace: "agents", Name: "cluster-inventory-agent",
		},
		workv1.FeedbackValue{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: ptr.To(pods)}})
}

func testAddonShell(t *testing.T) {
	s := newShell(t)
	a := s.join(metav1.ConditionTrue)

	s.condition(a, "RegistrationApplied", metav1.ConditionTrue)
	if a.Status.Namespace != "agents" {
		t.Errorf("install namespace %q", a.Status.Namespace)
	}
	user := "system:open-cluster-management:cluster:" + a.Namespace + ":addon:cluster-inventory:agent:cluster-inventory"
	if len(a.Status.Registrations) != 1 || a.Status.Registrations[0].KubeClient.Subject.User != user {
		t.Errorf("registrations %+v", a.Status.Registrations)
	}
	s.checkRights(a, user)
	s.checkWork(s.work(a, "addon-cluster-inventory-deploy-0"))
	s.checkApproval(a, user)

	s.reportReady(a, 0)
	s.condition(a, "Available", metav1.ConditionFalse)
	s.reportReady(a, 1)
	s.condition(a, "Available", metav1.ConditionTrue)

	s.condition(a, "ManifestApplied", metav1.ConditionTrue)
	s.checkReturn(a)
	s.wire.Settle(t, patience, settled)
	s.start()
	s.Eventually("the manager reads works again", func() string {
		if !slices.ContainsFunc(s.wire.Calls(), func(call apitest.Call) bool { return call.Resource == "manifestworks" }) {
			return fmt.Sprint("calls: ", s.wire.Calls())
		}
		return ""
	})
	s.wire.Quiet(t, settled, "after a restart")

	s.checkUpgrade(a)
	s.checkRepair(a)
	s.checkUnknownImage(a)
	s.checkHeld(a)
	s.checkRemoval(a)

	s.checkAbandoned(s.join(metav1.ConditionUnknown))
}

// checkReturn plays OCM when a cluster becomes unreachable and then returns, while the
// spoke has nothing new to report.
func (s *shell) checkReturn(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	setAvailable := func(status string) {
		apitest.EditStatus(s, cluster, func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = []metav1.Condition{
				ocmtest.Condition(clusterv1.ManagedClusterConditionAvailable, status, "Test", ""),
			}
		})
	}
	setAvailable("Unknown")
	apitest.EditStatus(s, a, func(a *addonv1beta1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionUnknown, Reason: "ManagedClusterLeaseUpdateStopped",
		})
	})
	s.wire.Settle(s.T, patience, settled)
	s.condition(a, "Available", metav1.ConditionUnknown)
	s.wire.Reset()
	setAvailable("True")
	s.condition(a, "Available", metav1.ConditionTrue)
	s.wire.Settle(s.T, patience, settled)
	want := []string{"PATCH managedclusteraddons/status"}
	if diff := cmp.Diff(want, s.wire.Sent("managedclusteraddons", "managedclusteraddons/status")); diff != "" {
		s.T.Errorf("writes to the addon of a cluster that is back (-want +got):\n%s", diff)
	}
}

// checkRights tries what the agent may and may not do.
func (s *shell) checkRights(a *addonv1beta1.ManagedClusterAddOn, user string) {
	s.T.Helper()
	agent := apitest.NewClient(s.T, server.User(s.T, user), ocmtest.Scheme())
	own := &addonv1beta1.ManagedClusterAddOnList{}
	named := func(name string) client.MatchingFields { return client.MatchingFields{"metadata.name": name} }
	s.Eventually("the agent reads its addon", apitest.Succeeds(func() error {
		return agent.List(s.T.Context(), own, client.InNamespace(a.Namespace), named("cluster-inventory"))
	}))
	if len(own.Items) != 1 {
		s.T.Errorf("the agent reads %d addons", len(own.Items))
	}
	relabel := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	forbidden := map[string]error{
		"list addons":              agent.List(s.T.Context(), own, client.InNamespace(a.Namespace)),
		"list addons of all":       agent.List(s.T.Context(), own, named("cluster-inventory")),
		"read secrets":             agent.List(s.T.Context(), &corev1.SecretList{}, client.InNamespace(a.Namespace)),
		"change its addon":         agent.Patch(s.T.Context(), a.DeepCopy(), relabel),
		"delete its addon":         agent.Delete(s.T.Context(), a.DeepCopy()),
		"read another addon of it": agent.List(s.T.Context(), own, client.InNamespace(a.Namespace), named("another")),
	}
	for what, err := range forbidden {
		if !apierrors.IsForbidden(err) {
			s.T.Errorf("the agent may %s: %v", what, err)
		}
	}
}

// checkWork checks that the work ships everything, owns only what is ours, and
// watches the agent.
func (s *shell) checkWork(work *workv1.ManifestWork) {
	s.T.Helper()
	wantOrphans := []workv1.OrphaningRule{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusterproperties.about.k8s.io"},
		{Resource: "namespaces", Name: "agents"},
	}
	if diff := cmp.Diff(wantOrphans, work.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules); diff != "" {
		s.T.Errorf("left on the spoke (-want +got):\n%s", diff)
	}
	crd := workv1.ResourceIdentifier{
		Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusterproperties.about.k8s.io",
	}
	agent := workv1.ResourceIdentifier{
		Group: "apps", Resource: "deployments", Namespace: "**", Name: "cluster-inventory-agent",
	}
	marker := workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "**", Name: "cluster-inventory-cleanup"}
	var createOnly, watched []workv1.ResourceIdentifier
	for _, config := range work.Spec.ManifestConfigs {
		if config.UpdateStrategy != nil && config.UpdateStrategy.Type == workv1.UpdateStrategyTypeCreateOnly {
			createOnly = append(createOnly, config.ResourceIdentifier)
		}
		if config.FeedbackScrapeType == workv1.FeedbackWatchType {
			watched = append(watched, config.ResourceIdentifier)
		}
	}
	if diff := cmp.Diff([]workv1.ResourceIdentifier{crd, marker}, createOnly); diff != "" {
		s.T.Errorf("never changed once created (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]workv1.ResourceIdentifier{agent}, watched); diff != "" {
		s.T.Errorf("watched (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, manifest := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest.Raw, &object); err != nil {
			s.T.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
		uid := []byte("--addon-uid=" + string(work.OwnerReferences[0].UID))
		if object.Kind == "Deployment" && !bytes.Contains(manifest.Raw, uid) {
			s.T.Errorf("the agent does not know the UID of its addon: %s", manifest.Raw)
		}
	}
	slices.Sort(kinds)
	want := []string{
		"ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding",
		"ConfigMap", "CustomResourceDefinition", "Deployment", "Namespace",
		"Role", "Role", "RoleBinding", "RoleBinding", "ServiceAccount", "ServiceAccount",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		s.T.Errorf("shipped (-want +got):\n%s", diff)
	}
}

// checkApproval requests certificates as the klusterlet and as another client.
func (s *shell) checkApproval(a *addonv1beta1.ManagedClusterAddOn, user string) {
	s.T.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Name("request")}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests"},
			Verbs:     []string{"create"},
		},
	}}
	s.MustCreate(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "klusterlets"}},
	})
	refused := make(chan struct{})
	failing := sync.OnceFunc(func() { close(refused) })
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		select {
		case <-refused:
			return apitest.Fault{}
		default:
		}
		if !call.IsWrite() || call.Resource != "certificatesigningrequests/approval" {
			return apitest.Fault{}
		}
		failing()
		return apitest.Fault{Status: 503, Reason: "ServiceUnavailable"}
	})
	stranger := s.request(a, user, "system:open-cluster-management:another:agent")
	klusterlet := s.request(a, user, "system:open-cluster-management:"+a.Namespace+":agent")
	s.Eventually("the klusterlet's request is approved", func() string {
		s.MustGet(klusterlet)
		if len(klusterlet.Status.Conditions) == 0 ||
			klusterlet.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
			return fmt.Sprintf("conditions %v", klusterlet.Status.Conditions)
		}
		return ""
	})
	select {
	case <-refused:
	default:
		s.T.Error("no approval failed first")
	}
	s.wire.Fail(nil)
	if s.MustGet(stranger); len(stranger.Status.Conditions) > 0 {
		s.T.Errorf("the stranger's request: %v", stranger.Status.Conditions)
	}
}

// request requests the certificate of the agent's user.
func (s *shell) request(
	a *addonv1beta1.ManagedClusterAddOn, user, requester string,
) *certificatesv1.CertificateSigningRequest {
	s.T.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apitest.Must(s.T, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: user,
		Organization: []string{
			"system:open-cluster-management:cluster:" + a.Namespace + ":addon:cluster-inventory",
			"system:open-cluster-management:addon:cluster-inventory",
		},
	}}, key)
	apitest.Must(s.T, err)
	requesting := server.User(s.T, requester, "klusterlets")
	s.EventuallyAllowed(requesting, true, authorizationv1.ResourceAttributes{
		Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verb: "create",
	})
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-", Labels: map[string]string{
			"open-cluster-management.io/cluster-name": a.Namespace, "open-cluster-management.io/addon-name": "cluster-inventory",
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	apitest.Must(s.T, apitest.NewClient(s.T, requesting, ocmtest.Scheme()).Create(s.T.Context(), request))
	return request
}

// checkUnknownImage makes a revision whose image no Role allows: the agent stays, and the
// addon's owner learns why.
func (s *shell) checkUnknownImage(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	s.refer(a, s.agents("quay.io/open-cluster-management/cluster-inventory-addon:v0"))
	const why = "the image of an agent must be that of an AgentRevision of the chart"
	s.Eventually("the addon says why", func() string {
		s.MustGet(a)
		applied := apimeta.FindStatusCondition(a.Status.Conditions, "ManifestApplied")
		if applied != nil && applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, why) {
			return ""
		}
		return fmt.Sprintf("ManifestApplied: %+v", applied)
	})
	s.refer(a, s.revision)
	s.condition(a, "ManifestApplied", metav1.ConditionTrue)
}

// checkUpgrade makes another revision, which the agent gets when it is the cluster's turn.
func (s *shell) checkUpgrade(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	const image = "quay.io/open-cluster-management/cluster-inventory-addon:v2"
	next := s.agents(image)
	s.wire.Quiet(s.T, settled, "before it is the cluster's turn")
	s.refer(a, next)
	s.runs(a, image)
	if writes := s.wire.Writes("manifestworks"); len(writes) != 1 {
		s.T.Errorf("%d writes of works, want one", len(writes))
	}
}

// runs waits until a cluster's agent has an image.
func (s *shell) runs(a *addonv1beta1.ManagedClusterAddOn, image string) {
	s.T.Helper()
	s.Eventually("the agent runs "+image, func() string {
		for _, manifest := range s.work(a, "addon-cluster-inventory-deploy-0").Spec.Workload.Manifests {
			if bytes.Contains(manifest.Raw, []byte(`"Deployment"`)) && bytes.Contains(manifest.Raw, []byte(image)) {
				return ""
			}
		}
		return "no Deployment with image " + image
	})
}

// checkHeld asks for an agent on another cluster, whose ManifestWorks the manager may not read:
// it says so, and writes and deletes nothing there or here.
func (s *shell) checkHeld(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	host := s.join(metav1.ConditionTrue)
	s.work(host, "addon-cluster-inventory-deploy-0")
	const annotation = "addon.open-cluster-management.io/hosting-cluster-name"
	apitest.Edit(s, a, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Annotations = map[string]string{annotation: host.Namespace}
	})
	s.Eventually("the addon says why", func() string {
		s.MustGet(a)
		applied := apimeta.FindStatusCondition(a.Status.Conditions, "ConfigurationApplied")
		if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason != "HostingDisabled" ||
			!strings.Contains(applied.Message, "agent.hosted.enabled") {
			return fmt.Sprintf("ConfigurationApplied: %+v", applied)
		}
		return ""
	})
	const image = "quay.io/open-cluster-management/cluster-inventory-addon:v2"
	s.wire.Reset()
	s.refer(a, s.agents(image))
	s.wire.Settle(s.T, patience, settled)
	if writes := s.wire.Writes("manifestworks"); len(writes) > 0 {
		s.T.Errorf("writes of works: %v", writes)
	}
	apitest.Edit(s, a, func(a *addonv1beta1.ManagedClusterAddOn) { delete(a.Annotations, annotation) })
	s.runs(a, image)
}

// checkRepair removes the agent's rights behind the manager's back.
func (s *shell) checkRepair(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: agentRole}}
	s.MustDelete(binding)
	s.EventuallyExists(binding)
	apitest.Edit(s, binding, func(binding *rbacv1.RoleBinding) { binding.Subjects = nil })
	s.Eventually("the RoleBinding is complete again", func() string {
		if s.MustGet(binding); len(binding.Subjects) != 1 {
			return fmt.Sprintf("subjects %v", binding.Subjects)
		}
		return ""
	})
}

// checkRemoval deletes the addon and plays the spoke that cleans up.
func (s *shell) checkRemoval(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	s.MustDelete(a)
	hook := s.work(a, "addon-cluster-inventory-pre-delete")
	shipped := hook.Spec.Workload.Manifests
	if len(shipped) != 1 || !bytes.Contains(shipped[0].Raw, []byte("--addon-uid="+string(a.UID))) {
		s.T.Errorf("hook %s", shipped)
	}
	s.reportApplied(hook,
		workv1.ManifestResourceMeta{
			Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs",
			Namespace: "agents", Name: "cluster-inventory-cleanup",
		},
		workv1.FeedbackValue{Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: ptr.To("True")}})
	s.EventuallyGone(a)
}

// checkAbandoned deletes the addon of a spoke that does not come back.
func (s *shell) checkAbandoned(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	s.work(a, "addon-cluster-inventory-deploy-0")
	// Until the framework holds it, the addon would go without any clean-up.
	s.Eventually("the framework holds the addon", func() string {
		if s.MustGet(a); !slices.Contains(a.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer) {
			return fmt.Sprint("finalizers ", a.Finalizers)
		}
		return ""
	})
	s.MustDelete(a)
	s.EventuallyGone(a)
	namespaces := map[string]string{"ManagedClusterAddOn": a.Namespace, "ManagedCluster": metav1.NamespaceDefault}
	for regarding, where := range namespaces {
		s.Eventually("an event about the "+regarding, func() string {
			events := &eventsv1.EventList{}
			s.MustList(events, client.InNamespace(where))
			if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Kind == regarding && e.Reason == "CleanupAbandoned"
			}) {
				return fmt.Sprintf("events %v", events.Items)
			}
			return ""
		})
	}
}
