package charts

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

// A ConfigMap with a label tells consumers where a cluster's API server is.
func testTheManagerMayWriteOnlyItsConfigMap(t *testing.T) {
	p := install(t)
	const (
		onlyItsOwn   = "only the ConfigMap with the CAs of cluster-proxy"
		directAccess = "may not configure direct access"
	)
	labelled := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: hubtest.Namespace, Name: name,
				Labels: map[string]string{"inventory.open-cluster-management.io/direct-access": "true"},
			},
			Data: map[string]string{"cluster1": "server: https://evil.example.com"},
		}
	}
	p.eventuallyRefused(labelled("direct"), onlyItsOwn)
	another := labelled("another")
	another.Labels = nil
	unnamed := labelled("")
	unnamed.GenerateName = "cluster-inventory-access-ca"
	for name, object := range map[string]*corev1.ConfigMap{"without the label": another, "of a name that the server makes": unnamed} {
		t.Run(name, func(t *testing.T) { checkAttempt(t, p.manager.Create(t.Context(), object), onlyItsOwn) })
	}

	patch := func(body string) error {
		own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-access-ca"}}
		return p.manager.Patch(t.Context(), own, client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll)
	}
	for body, message := range map[string]string{
		`{"data":{"ca":"c"}}`: "",
		`{"metadata":{"labels":{"example.com/cost-center":"x"}}}`:                                "",
		`{"metadata":{"labels":{"inventory.open-cluster-management.io/direct-access":"true"}}}`:  directAccess,
		`{"metadata":{"labels":{"inventory.open-cluster-management.io/direct-access":"false"}}}`: directAccess,
		`{"immutable":true}`: "cannot be changed any more",
		`{"metadata":{"finalizers":["example.com/hold"]}}`:                                                               "may add no finalizers",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"not-there","uid":"not-there"}]}}`: "may add no owners",
	} {
		t.Run(body, func(t *testing.T) { checkAttempt(t, patch(body), message) })
	}

	// The chart's ConfigMap may be deleted, and the manager creates it again, but only as it was.
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-access-ca"}}
	p.MustGet(own)
	p.MustDelete(own)
	checkAttempt(t, p.manager.Create(t.Context(), labelled(own.Name)), directAccess)
	again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}, Data: map[string]string{"ca": "c"}}
	checkAttempt(t, p.manager.Create(t.Context(), again), "")
	p.MustDelete(again)
	own.ResourceVersion, own.UID = "", ""
	p.MustCreate(own)

	t.Run("what an administrator has labelled", func(t *testing.T) {
		p.MustMerge(own, `{"metadata":{"labels":{"inventory.open-cluster-management.io/direct-access":"true"}}}`)
		checkAttempt(t, patch(`{"data":{"ca":"c"}}`), "")
		p.MustMerge(own, `{"metadata":{"labels":{"inventory.open-cluster-management.io/direct-access":null}}}`)
	})
	t.Run("other clients are not restricted", func(*testing.T) {
		theirs := labelled("theirs")
		p.MustCreate(theirs)
		p.MustDelete(theirs)
	})
}

// A manager that does not hold the Lease withdraws nothing.
func testTheManagerMayHoldItsLeaseOnlyForAMoment(t *testing.T) {
	p := install(t)
	const (
		onlyItsOwn = "only the Lease of its own leader election"
		forLong    = "for no longer than 60 seconds"
		oneByOne   = "only one by one"
		name       = "cluster-inventory-manager"
	)
	lease := func(name string, seconds, holders int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("thief"), LeaseDurationSeconds: &seconds, LeaseTransitions: &holders,
				AcquireTime: ptr.To(metav1.NewMicroTime(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))),
				RenewTime:   ptr.To(metav1.NewMicroTime(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))),
			},
		}
	}
	p.eventuallyRefused(lease("another", 10, 0), onlyItsOwn)

	own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: name}}
	p.MustGet(own)
	before := own.DeepCopy()
	apitest.Edit(p, own, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To[int32](7) })
	attempts := map[string]struct {
		seconds, holders int32
		change           func(*coordinationv1.Lease)
		message          string
	}{
		"as the manager does":           {seconds: 10, holders: 8},
		"as long as is allowed":         {seconds: 60, holders: 7},
		"as when it is given up":        {seconds: 1, holders: 7, change: func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") }},
		"after it was deleted":          {seconds: 10, holders: 0},
		"for longer":                    {seconds: 61, holders: 8, message: forLong},
		"forever":                       {seconds: 2000000000, holders: 8, message: forLong},
		"so that the counter overflows": {seconds: 10, holders: 1<<31 - 1, message: oneByOne},
		"two holders later":             {seconds: 10, holders: 9, message: oneByOne},
		"held by a finalizer": {seconds: 10, holders: 8, change: func(l *coordinationv1.Lease) {
			l.Finalizers = []string{"example.com/hold"}
		}, message: "may add no finalizers"},
		"owned by what is not there": {seconds: 10, holders: 8, change: func(l *coordinationv1.Lease) {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "u"}}
		}, message: "may add no owners"},
	}
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			update := lease(own.Name, attempt.seconds, attempt.holders)
			update.ResourceVersion = own.ResourceVersion
			if attempt.change != nil {
				attempt.change(update)
			}
			checkAttempt(t, p.manager.Update(t.Context(), update, client.DryRunAll), attempt.message)
		})
	}

	p.MustDelete(own)
	for name, attempt := range map[string]struct {
		seconds, holders int32
		message          string
	}{
		"recreated": {10, 0, ""}, "created for longer": {61, 0, forLong}, "created with an overflow": {10, 1<<31 - 1, oneByOne},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.manager.Create(t.Context(), lease(own.Name, attempt.seconds, attempt.holders), client.DryRunAll)
			checkAttempt(t, err, attempt.message)
		})
	}
	before.ResourceVersion, before.UID = "", ""
	p.MustCreate(before)
	t.Run("other clients are not restricted", func(*testing.T) {
		theirs := lease("theirs", 2000000000, 0)
		p.MustCreate(theirs)
		p.MustDelete(theirs)
	})
}

// What the policy leaves a thief is the Lease for a minute from the last request, regardless of its
// times. Meanwhile, the metric shows that no manager leads.
func testAManagerLeadsAfterATheft(t *testing.T) {
	p := install(t)
	own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-manager"}}
	p.MustGet(own)
	before := own.DeepCopy()
	t.Cleanup(func() {
		p.MustDelete(own)
		before.ResourceVersion, before.UID = "", ""
		p.MustCreate(before)
	})
	future := ptr.To(metav1.NewMicroTime(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)))
	own.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("thief"), LeaseDurationSeconds: ptr.To[int32](60), LeaseTransitions: ptr.To[int32](1),
		AcquireTime: future, RenewTime: future,
	}
	checkAttempt(t, p.manager.Update(t.Context(), own), "")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	apitest.Must(t, err)
	apitest.Must(t, listener.Close())
	address := listener.Addr().String()
	hubtest.Start(t, server.User(t, hubtest.User),
		"--leader-elect", "--metrics-secure=false", "--metrics-bind-address="+address)
	leads := func(want string) {
		t.Helper()
		p.Eventually("leading is "+want, func() string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
			apitest.Must(t, err)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err.Error()
			}
			defer func() { _ = resp.Body.Close() }()
			text, err := io.ReadAll(resp.Body)
			line := `leader_election_master_status{name="cluster-inventory-manager"} ` + want + "\n"
			if err != nil || !strings.Contains(string(text), line) {
				return fmt.Sprintf("%d bytes of metrics without %q, %v", len(text), line, err)
			}
			return ""
		})
	}
	leads("0")
	// No test waits for the rest of that minute.
	p.MustMerge(own, `{"spec":{"leaseDurationSeconds":1}}`)
	leads("1")
}
