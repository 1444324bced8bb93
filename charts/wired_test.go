package charts

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// settled is how long nothing may be written for it to count as nothing.
const settled = 3 * time.Second

// patience is how long a test waits for what must happen.
const patience = time.Minute

const serviceAccount = "system:serviceaccount:" + namespace + ":cluster-inventory-manager"

var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// shell is the addon shell on a hub, with the rights that the chart gives it.
type shell struct {
	t    *testing.T
	c    client.Client // the administrator's
	wire *apitest.Wire // what the manager sends
	stop func()

	image string // the agent's
}

func newShell(t *testing.T) *shell {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(hub.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, c: c, stop: func() {}, image: "example.com/inventory:v1"}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: proxyNamespace}})
	for _, object := range mustRender(t, "") {
		if _, hook := object.GetAnnotations()["helm.sh/hook"]; !hook && object.GetKind() != "Deployment" {
			s.create(object)
		}
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a manager anew, as after a restart.
func (s *shell) start() {
	s.t.Helper()
	s.stop()
	s.wire = &apitest.Wire{}
	byObject := selection.CacheOptions()
	maps.Copy(byObject, inventory.CacheOptions())
	mgr, err := manager.New(s.wire.Tap(hub.User(s.t, serviceAccount)), manager.Options{
		Scheme:  s.c.Scheme(),
		Logger:  klog.Background(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// As the manager has it, with all that it leaves out of its cache.
		Cache:      cache.Options{ByObject: byObject},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // a restart, in one process
	})
	if err != nil {
		s.t.Fatal(err)
	}
	err = addon.Add(mgr, addon.Options{
		AgentImage: s.image, AgentImagePullPolicy: "IfNotPresent", InstallNamespace: "agents",
		ClaimLimit: 20, CleanupTimeout: time.Second,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("manager: %v", err)
		}
		s.stop = func() {}
	}
}

func (s *shell) create(object client.Object) {
	s.t.Helper()
	if err := s.c.Create(s.t.Context(), object); err != nil {
		s.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// update reads the object, changes it and writes it, until that succeeds.
func (s *shell) update(object client.Object, change func()) {
	s.t.Helper()
	s.eventually("updating "+object.GetName(), func() error {
		if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return s.c.Update(s.t.Context(), object)
	})
}

func (s *shell) updateStatus(object client.Object, change func()) {
	s.t.Helper()
	s.eventually("updating the status of "+object.GetName(), func() error {
		if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return s.c.SubResource("status").Update(s.t.Context(), object)
	})
}

func (s *shell) eventually(what string, check func() error) {
	s.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v", what, last)
	}
}

// join makes a cluster that is there, with the addon as OCM's addon manager
// leaves it.
func (s *shell) join(available metav1.ConditionStatus) *addonv1beta1.ManagedClusterAddOn {
	s.t.Helper()
	name := hub.Namespace(s.t, nil)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	s.create(cluster)
	s.updateStatus(cluster, func() {
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: available, Reason: "Test", LastTransitionTime: metav1.Now()}}
	})
	definition := &addonv1beta1.ClusterManagementAddOn{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: "cluster-inventory"}, definition); err != nil {
		s.t.Fatal(err)
	}
	a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "cluster-inventory", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: definition.Name, UID: definition.UID, Controller: ptr.To(true),
	}}}}
	s.create(a)
	return a
}

func (s *shell) condition(a *addonv1beta1.ManagedClusterAddOn, conditionType string, status metav1.ConditionStatus) {
	s.t.Helper()
	s.eventually(conditionType+" to become "+string(status), func() error {
		if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		if got := apimeta.FindStatusCondition(a.Status.Conditions, conditionType); got == nil || got.Status != status {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
}

func (s *shell) work(a *addonv1beta1.ManagedClusterAddOn, name string) *workv1.ManifestWork {
	s.t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}
	s.eventually("work "+name, func() error { return s.c.Get(s.t.Context(), client.ObjectKeyFromObject(work), work) })
	return work
}

// applied is what the klusterlet's work agent reports; ready pods or the job's
// completion with it.
func (s *shell) applied(work *workv1.ManifestWork, resource workv1.ManifestResourceMeta, value workv1.FeedbackValue) {
	s.t.Helper()
	s.updateStatus(work, func() {
		work.Status.Conditions = []metav1.Condition{
			{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()},
			{Type: workv1.WorkAvailable, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()},
		}
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
			ResourceMeta:    resource,
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{value}},
			Conditions:      []metav1.Condition{},
		}}
	})
}

func (s *shell) agentReady(a *addonv1beta1.ManagedClusterAddOn, pods int64) {
	s.t.Helper()
	s.applied(s.work(a, "addon-cluster-inventory-deploy-0"),
		workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "agents", Name: "cluster-inventory-agent"},
		workv1.FeedbackValue{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: ptr.To(pods)}})
}

// calm waits until the manager owes nothing.
func (s *shell) calm() {
	s.t.Helper()
	s.eventually("the manager to come to rest", func() error {
		before := len(s.writes())
		err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, settled, false, func(context.Context) (bool, error) {
			return len(s.writes()) > before, nil
		})
		if err == nil {
			return fmt.Errorf("it writes: %v", s.writes()[before:])
		}
		return nil
	})
}

// quiet fails when the manager writes anything.
func (s *shell) quiet(when string) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, settled, false, func(context.Context) (bool, error) {
		return len(s.writes()) > 0, nil
	})
	if err == nil {
		s.t.Errorf("writes %s: %v", when, s.writes())
	}
}

// writes are the manager's, but for the questions that count as such.
func (s *shell) writes() []apitest.Call {
	return slices.DeleteFunc(s.wire.Writes(), func(call apitest.Call) bool {
		return strings.Contains(call.Path, "authorization.k8s.io") && strings.Contains(call.Path, "reviews")
	})
}

func TestAddonShell(t *testing.T) {
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

	s.agentReady(a, 0)
	s.condition(a, "Available", metav1.ConditionFalse)
	s.agentReady(a, 1)
	s.condition(a, "Available", metav1.ConditionTrue)

	s.condition(a, "ManifestApplied", metav1.ConditionTrue)
	s.calm()
	s.start()
	s.eventually("the manager to look at the addon again", func() error {
		if !slices.ContainsFunc(s.wire.Calls(), func(call apitest.Call) bool { return call.Resource == "manifestworks" }) {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	s.quiet("after a restart")

	s.checkUpgrade(a)
	s.checkRepair(a)
	s.checkRemoval(a)

	s.checkLettingGo(s.join(metav1.ConditionUnknown))
}

// checkRights asks the API server what the agent may do.
func (s *shell) checkRights(a *addonv1beta1.ManagedClusterAddOn, user string) {
	s.t.Helper()
	agent, err := client.New(hub.User(s.t, user), client.Options{Scheme: s.c.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the agent to read its addon", func() error {
		return agent.Get(s.t.Context(), client.ObjectKeyFromObject(a), &addonv1beta1.ManagedClusterAddOn{})
	})
	own := &addonv1beta1.ManagedClusterAddOnList{}
	if err := agent.List(s.t.Context(), own, client.InNamespace(a.Namespace), client.MatchingFields{"metadata.name": "cluster-inventory"}); err != nil {
		s.t.Errorf("the agent may not list its addon: %v", err)
	}
	forbidden := map[string]error{
		"list addons":              agent.List(s.t.Context(), own, client.InNamespace(a.Namespace)),
		"list addons of all":       agent.List(s.t.Context(), own, client.MatchingFields{"metadata.name": "cluster-inventory"}),
		"read secrets":             agent.List(s.t.Context(), &corev1.SecretList{}, client.InNamespace(a.Namespace)),
		"change its addon":         agent.Patch(s.t.Context(), a.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
		"delete its addon":         agent.Delete(s.t.Context(), a.DeepCopy()),
		"read another addon of it": agent.Get(s.t.Context(), client.ObjectKey{Namespace: a.Namespace, Name: "another"}, &addonv1beta1.ManagedClusterAddOn{}),
	}
	for what, err := range forbidden {
		if !apierrors.IsForbidden(err) {
			s.t.Errorf("the agent may %s: %v", what, err)
		}
	}
}

// checkWork holds the work to shipping everything, owning only what is ours,
// and watching the agent.
func (s *shell) checkWork(work *workv1.ManifestWork) {
	s.t.Helper()
	wantOrphans := []workv1.OrphaningRule{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusterproperties.about.k8s.io"},
		{Resource: "namespaces", Name: "agents"},
	}
	if diff := cmp.Diff(wantOrphans, work.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules); diff != "" {
		s.t.Errorf("left on the spoke (-want +got):\n%s", diff)
	}
	crd := workv1.ResourceIdentifier{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusterproperties.about.k8s.io"}
	agent := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "agents", Name: "cluster-inventory-agent"}
	marker := workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "agents", Name: "cluster-inventory-cleanup"}
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
		s.t.Errorf("never changed once created (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]workv1.ResourceIdentifier{agent}, watched); diff != "" {
		s.t.Errorf("watched (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, manifest := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest.Raw, &object); err != nil {
			s.t.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
		if object.Kind == "Deployment" && !bytes.Contains(manifest.Raw, []byte("--addon-uid="+string(work.OwnerReferences[0].UID))) {
			s.t.Errorf("the agent does not know the UID of its addon: %s", manifest.Raw)
		}
	}
	slices.Sort(kinds)
	want := []string{
		"ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "Deployment", "Namespace",
		"Role", "Role", "RoleBinding", "RoleBinding", "ServiceAccount", "ServiceAccount",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		s.t.Errorf("shipped (-want +got):\n%s", diff)
	}
}

// checkApproval asks for certificates as the klusterlet and as somebody else.
func (s *shell) checkApproval(a *addonv1beta1.ManagedClusterAddOn, user string) {
	s.t.Helper()
	s.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ask"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
	}})
	s.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ask"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ask"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "klusterlets"}},
	})
	stranger := s.ask(a, user, "system:open-cluster-management:another:agent")
	klusterlet := s.ask(a, user, "system:open-cluster-management:"+a.Namespace+":agent")
	s.eventually("the klusterlet's request to be approved", func() error {
		if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(klusterlet), klusterlet); err != nil {
			return err
		}
		if len(klusterlet.Status.Conditions) == 0 || klusterlet.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
			return fmt.Errorf("conditions %v", klusterlet.Status.Conditions)
		}
		return nil
	})
	if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil || len(stranger.Status.Conditions) > 0 {
		s.t.Errorf("the stranger's request: %v, %v", stranger.Status.Conditions, err)
	}
}

func (s *shell) ask(a *addonv1beta1.ManagedClusterAddOn, user, requester string) *certificatesv1.CertificateSigningRequest {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   user,
		Organization: []string{"system:open-cluster-management:cluster:" + a.Namespace + ":addon:cluster-inventory", "system:open-cluster-management:addon:cluster-inventory"},
	}}, key)
	if err != nil {
		s.t.Fatal(err)
	}
	asking, err := client.New(hub.User(s.t, requester, "klusterlets"), client.Options{Scheme: s.c.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
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
	s.eventually("the request for a certificate", func() error { return asking.Create(s.t.Context(), request) })
	return request
}

// checkUpgrade starts a manager of another version.
func (s *shell) checkUpgrade(a *addonv1beta1.ManagedClusterAddOn) {
	s.t.Helper()
	s.image = "example.com/inventory:v2"
	s.start()
	s.eventually("the agent to be upgraded", func() error {
		for _, manifest := range s.work(a, "addon-cluster-inventory-deploy-0").Spec.Workload.Manifests {
			if bytes.Contains(manifest.Raw, []byte(`"Deployment"`)) && bytes.Contains(manifest.Raw, []byte(s.image)) {
				return nil
			}
		}
		return fmt.Errorf("no Deployment with image %s", s.image)
	})
	if writes := s.wire.Writes("manifestworks"); len(writes) != 1 {
		s.t.Errorf("%d writes of works, want one", len(writes))
	}
}

// checkRepair takes the agent's rights away behind the manager's back.
func (s *shell) checkRepair(a *addonv1beta1.ManagedClusterAddOn) {
	s.t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "cluster-inventory-agent"}}
	if err := s.c.Delete(s.t.Context(), binding); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the binding to come back", func() error { return s.c.Get(s.t.Context(), client.ObjectKeyFromObject(binding), binding) })
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "cluster-inventory-agent"}}
	s.update(role, func() { role.Rules = nil })
	s.eventually("the role to be whole again", func() error {
		if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}
		if len(role.Rules) != 2 {
			return fmt.Errorf("rules %v", role.Rules)
		}
		return nil
	})
}

// checkRemoval deletes the addon and plays the spoke that cleans up.
func (s *shell) checkRemoval(a *addonv1beta1.ManagedClusterAddOn) {
	s.t.Helper()
	if err := s.c.Delete(s.t.Context(), a); err != nil {
		s.t.Fatal(err)
	}
	hook := s.work(a, "addon-cluster-inventory-pre-delete")
	if len(hook.Spec.Workload.Manifests) != 1 || !bytes.Contains(hook.Spec.Workload.Manifests[0].Raw, []byte("--addon-uid="+string(a.UID))) {
		s.t.Errorf("hook %s", hook.Spec.Workload.Manifests)
	}
	s.applied(hook,
		workv1.ManifestResourceMeta{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "agents", Name: "cluster-inventory-cleanup"},
		workv1.FeedbackValue{Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: ptr.To("True")}})
	s.gone(a)
}

// checkLettingGo deletes the addon of a spoke that does not come back.
func (s *shell) checkLettingGo(a *addonv1beta1.ManagedClusterAddOn) {
	s.t.Helper()
	s.work(a, "addon-cluster-inventory-deploy-0")
	if err := s.c.Delete(s.t.Context(), a); err != nil {
		s.t.Fatal(err)
	}
	s.gone(a)
	for regarding, where := range map[string]string{"ManagedClusterAddOn": a.Namespace, "ManagedCluster": metav1.NamespaceDefault} {
		s.eventually("an event about the "+regarding, func() error {
			told := &eventsv1.EventList{}
			if err := s.c.List(s.t.Context(), told, client.InNamespace(where)); err != nil {
				return err
			}
			if !slices.ContainsFunc(told.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind == regarding && e.Reason == "CleanupAbandoned" }) {
				return fmt.Errorf("events %v", told.Items)
			}
			return nil
		})
	}
}

func (s *shell) gone(a *addonv1beta1.ManagedClusterAddOn) {
	s.t.Helper()
	s.eventually("the addon to go", func() error {
		err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(a), &addonv1beta1.ManagedClusterAddOn{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}
