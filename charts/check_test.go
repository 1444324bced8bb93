package charts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/check"
)

// testTheChartsTest: what "helm test" runs finds nothing missing on a hub with the chart once
// a manager renews its Lease, and has all the rights that it takes.
func testTheChartsTest(t *testing.T) {
	p := install(t)
	checker, err := check.New(server.User(t, hubtest.User), hubtest.Namespace)
	apitest.Must(t, err)
	renew := func(seconds int64) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: hubtest.Namespace, Name: "cluster-inventory-manager",
		}}
		apitest.Edit(p, lease, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To("test"), ptr.To(metav1.NewMicroTime(time.Unix(seconds, 0)))
		})
	}
	renew(1)
	const idle = "the manager test has not renewed Lease cluster-inventory-manager since this check began"
	p.Eventually("the Lease alone is missing", func() string {
		missing, err := checker.Look(t.Context())
		if err != nil {
			return err.Error()
		}
		return cmp.Diff([]string{idle}, missing)
	})
	renew(2)
	if missing, err := checker.Look(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("missing: %q, %v", missing, err)
	}

	stranger, err := check.New(server.User(t, "somebody"), hubtest.Namespace)
	apitest.Must(t, err)
	missing, err := stranger.Look(t.Context())
	apitest.Must(t, err)
	for _, want := range []string{
		"the manager may not create clusterprofiles of multicluster.x-k8s.io",
		"the manager may not list configmaps in " + hubtest.Namespace,
		"there is no Lease cluster-inventory-manager",
	} {
		if !slices.Contains(missing, want) {
			t.Errorf("without rights, %q is not among\n%s", want, strings.Join(missing, "\n"))
		}
	}
}
