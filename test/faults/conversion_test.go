package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// Open Cluster Management's operator stores addons in v1alpha1, and converts them by its webhook.
func TestConvertedAddonsAreStoredInTheOlderVersion(t *testing.T) {
	crds, err := converted("https://127.0.0.1:1/convert", []byte("ca"))()
	apitest.Must(t, err)
	stored, served := map[string]string{}, map[string][]string{}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				stored[crd.Name] = version.Name
			}
			if version.Served {
				served[crd.Name] = append(served[crd.Name], version.Name)
			}
		}
		if hook := crd.Spec.Conversion.Webhook.ClientConfig; *hook.URL != "https://127.0.0.1:1/convert" || string(hook.CABundle) != "ca" {
			t.Errorf("%s is converted by %+v", crd.Name, hook)
		}
	}
	wantStored, wantServed := map[string]string{}, map[string][]string{}
	for _, name := range convertedKinds {
		wantStored[name], wantServed[name] = "v1alpha1", []string{"v1alpha1", "v1beta1"}
	}
	if diff := cmp.Diff(wantStored, stored) + cmp.Diff(wantServed, served); diff != "" {
		t.Errorf("stored and served (-want +got):\n%s", diff)
	}
}
