package ownwork_test

import (
	"cmp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// A spoke may label the ManifestWorks in its namespace as it likes, but choose no names.
func TestOnlyTheNameIdentifiesAManifestWork(t *testing.T) {
	for name, want := range map[string]string{
		"addon-cluster-inventory-deploy-0":                "own",
		"addon-cluster-inventory-deploy-12":               "own",
		"addon-cluster-inventory-pre-delete":              "own cleanup",
		"addon-cluster-inventory-deploy-hosting-c1-0":     "c1",
		"addon-cluster-inventory-deploy-hosting-c-1-0":    "c-1",
		"addon-cluster-inventory-deploy-hosting-c-1-0-0":  "c-1-0",
		"addon-cluster-inventory-pre-delete-hosting-c1":   "c1 cleanup",
		"addon-cluster-inventory-deploy-hosting-host-0":   "", // a cluster does not host itself
		"addon-cluster-inventory-pre-delete-hosting-host": "",
		"addon-cluster-inventory-deploy":                  "",
		"addon-cluster-inventory-deploy-x":                "",
		"addon-cluster-inventory-deploy-hosting-c1":       "",
		"addon-cluster-inventory-deploy-hosting-0":        "",
		"addon-cluster-inventory-pre-delete-hosting-":     "",
		"addon-cluster-inventory-pre-delete-0":            "",
		"addon-managed-serviceaccount-deploy-0":           "",
		"another-addon-cluster-inventory-deploy-0":        "",
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "host", Name: name, Labels: map[string]string{
				"open-cluster-management.io/addon-name":      "cluster-inventory",
				"open-cluster-management.io/addon-namespace": "c9",
			}}}
			got := ""
			if read, ok := ownwork.ReadName(work); ok {
				got = cmp.Or(read.Hosted, "own")
				if read.Cleanup {
					got += " cleanup"
				}
			}
			if got != want {
				t.Errorf("it is for %q, want %q", got, want)
			}
		})
	}
}
