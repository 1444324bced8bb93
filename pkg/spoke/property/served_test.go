package property

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// discovered responds for each version; a version it lacks is not served.
type discovered map[string]error

func (d discovered) Serves(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	err, served := d[kind.GroupVersion().String()]
	return served && err == nil, err
}

// got responds to every Get with one error, or with the property.
type got struct {
	client.Reader
	err      error
	property *Property
}

func (g got) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if read, ok := obj.(*unstructured.Unstructured); ok && g.err == nil {
		read.SetName(key.Name)
		read.SetUID(g.property.UID)
		read.SetLabels(map[string]string{contract.LabelSpokeOnly: ""})
		read.Object["spec"] = map[string]any{"value": g.property.Value}
	}
	return g.err
}

var (
	errAPI      = errors.New("no answer")
	errNotFound = apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, CRDName)
)

func TestObserve(t *testing.T) {
	for name, tc := range map[string]struct {
		served  discovered
		crd     error
		want    API
		wantErr error
	}{
		"both versions served: v1beta1 is read": {
			served: discovered{"about.k8s.io/v1beta1": nil, "about.k8s.io/v1alpha1": nil},
			want:   API{Version: "v1beta1"},
		},
		"only v1alpha1 served: v1alpha1 is read": {
			served: discovered{"about.k8s.io/v1alpha1": nil},
			want:   API{Version: "v1alpha1"},
		},
		"nothing served and no CRD: there are no properties": {
			crd:  errNotFound,
			want: API{Absent: true},
		},
		"nothing served but a CRD: nothing can be said of properties": {
			want: API{},
		},
		"discovery of the preferred version fails: no answer, though the other is served": {
			served:  discovered{"about.k8s.io/v1beta1": errAPI, "about.k8s.io/v1alpha1": nil},
			wantErr: errAPI,
		},
		"the CRD cannot be read: no answer": {
			crd:     errAPI,
			wantErr: errAPI,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, err := Observe(t.Context(), tc.served, got{err: tc.crd})
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error = %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, api); diff != "" {
				t.Errorf("API (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLive(t *testing.T) {
	notServed := apierrors.NewGenericServerResponse(
		404, "GET", schema.GroupResource{Group: Group, Resource: "clusterproperties"}, "a", "404 page not found", 0, true,
	)
	there := &Property{Name: "a", UID: "u", Value: "v", SpokeOnly: true}
	for name, tc := range map[string]struct {
		api     API
		get     error
		want    *Property
		wantErr bool
	}{
		"the property is not found: there is none":     {api: API{Version: "v1beta1"}, get: errNotFound},
		"the property is there: as it is":              {api: API{Version: "v1beta1"}, want: there},
		"the version is no longer served: no answer":   {api: API{Version: "v1beta1"}, get: notServed, wantErr: true},
		"the API server does not answer: no answer":    {api: API{Version: "v1beta1"}, get: errAPI, wantErr: true},
		"no API and no CRD: there is none":             {api: API{Absent: true}, get: errNotFound},
		"no API but the CRD has come since: no answer": {api: API{Absent: true}, wantErr: true},
		"no API and the CRD cannot be read: no answer": {api: API{Absent: true}, get: errAPI, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Live(t.Context(), got{err: tc.get, property: there}, tc.api, "a")
			if (err != nil) != tc.wantErr {
				t.Errorf("error = %v, want one: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, read); diff != "" {
				t.Errorf("property (-want +got):\n%s", diff)
			}
		})
	}
}
