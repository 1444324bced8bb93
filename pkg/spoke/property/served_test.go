package property

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// discovered responds for each version; a version it lacks is not served.
type discovered map[string]error

func (d discovered) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	err, ok := d[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: Kind}}}, err
}

// responding is a reader that responds to every Get with one error.
func responding(err error) client.Reader {
	return apitest.Getter(func(client.ObjectKey, client.Object) error { return err })
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
			api, err := Observe(t.Context(), tc.served, responding(tc.crd))
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error = %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, api); diff != "" {
				t.Errorf("API (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGone(t *testing.T) {
	notServed := apierrors.NewGenericServerResponse(
		404, "GET", schema.GroupResource{Group: Group, Resource: "clusterproperties"}, "a", "404 page not found", 0, true,
	)
	for name, tc := range map[string]struct {
		api     API
		get     error
		want    bool
		wantErr bool
	}{
		"the property is not found: gone":              {api: API{Version: "v1beta1"}, get: errNotFound, want: true},
		"the property is there: not gone":              {api: API{Version: "v1beta1"}},
		"the version is no longer served: no answer":   {api: API{Version: "v1beta1"}, get: notServed, wantErr: true},
		"the API server does not answer: no answer":    {api: API{Version: "v1beta1"}, get: errAPI, wantErr: true},
		"no API and no CRD: gone":                      {api: API{Absent: true}, get: errNotFound, want: true},
		"no API but the CRD has come since: not gone":  {api: API{Absent: true}},
		"no API and the CRD cannot be read: no answer": {api: API{Absent: true}, get: errAPI, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			gone, err := Gone(t.Context(), responding(tc.get), tc.api, "a")
			if gone != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("Gone = %v, %v; want %v, error %v", gone, err, tc.want, tc.wantErr)
			}
		})
	}
}
