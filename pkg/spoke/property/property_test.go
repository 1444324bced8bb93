package property

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(change func(obj map[string]any)) *unstructured.Unstructured {
	obj := map[string]any{
		"apiVersion": "about.k8s.io/v1beta1",
		"kind":       "ClusterProperty",
		"metadata": map[string]any{
			"name":              "location",
			"uid":               "u1",
			"resourceVersion":   "7",
			"generation":        int64(3),
			"creationTimestamp": "2026-01-01T00:00:00Z",
			"annotations":       map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
			"labels":            map[string]any{"team": "a"},
			"managedFields":     []any{map[string]any{"manager": "kubectl"}},
		},
		"spec": map[string]any{"value": "eu"},
	}
	if change != nil {
		change(obj)
	}
	return &unstructured.Unstructured{Object: obj}
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   Property
	}{
		"plain property": {
			want: Property{Name: "location", UID: "u1", Value: "eu"},
		},
		"spoke-only label counts with any value": {
			change: func(obj map[string]any) {
				obj["metadata"].(map[string]any)["labels"] = map[string]any{"open-cluster-management.io/spoke-only": "false"}
			},
			want: Property{Name: "location", UID: "u1", Value: "eu", SpokeOnly: true},
		},
		"no spec reads as empty": {
			change: func(obj map[string]any) { delete(obj, "spec") },
			want:   Property{Name: "location", UID: "u1"},
		},
		"value that is no string reads as empty": {
			change: func(obj map[string]any) { obj["spec"] = map[string]any{"value": int64(1)} },
			want:   Property{Name: "location", UID: "u1"},
		},
		"spec that is no object reads as empty": {
			change: func(obj map[string]any) { obj["spec"] = "eu" },
			want:   Property{Name: "location", UID: "u1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Read(object(tc.change))); diff != "" {
				t.Errorf("Read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObstacle(t *testing.T) {
	for name, tc := range map[string]struct {
		property Property
		want     Obstacle
		reserved Reserved
	}{
		"value of one byte passes":                          {Property{Value: "x"}, ObstacleNone, nil},
		"value of 1024 bytes passes":                        {Property{Value: strings.Repeat("x", 1024)}, ObstacleNone, nil},
		"value of 1025 bytes is too long":                   {Property{Value: strings.Repeat("x", 1025)}, ObstacleTooLong, nil},
		"bytes count, not characters":                       {Property{Value: strings.Repeat("é", 513)}, ObstacleTooLong, nil},
		"empty value is not published":                      {Property{}, ObstacleEmpty, nil},
		"broken UTF-8 is not published":                     {Property{Value: "a\xffb"}, ObstacleNotText, nil},
		"spoke-only is not published":                       {Property{Value: "x", SpokeOnly: true}, ObstacleSpokeOnly, nil},
		"the label takes precedence over the invalid value": {Property{SpokeOnly: true}, ObstacleSpokeOnly, nil},
		"text of other scripts passes":                      {Property{Value: "東京"}, ObstacleNone, nil},
		"control characters are the owner's own matter":     {Property{Value: "a\nb"}, ObstacleNone, nil},
		"a reserved name is not published":                  {Property{Name: "a.ocm.io", Value: "x"}, ObstacleReserved, Reserved{"b", "*.ocm.io"}},
		"a reserved name with several parts":                {Property{Name: "a.b.ocm.io", Value: "x"}, ObstacleReserved, Reserved{"*.ocm.io"}},
		"the reserved domain itself passes":                 {Property{Name: "ocm.io", Value: "x"}, ObstacleNone, Reserved{"*.ocm.io"}},
		"a name that only ends alike passes":                {Property{Name: "a.myocm.io", Value: "x"}, ObstacleNone, Reserved{"*.ocm.io"}},
		"a reserved name that stays on the spoke":           {Property{Name: "a.ocm.io", SpokeOnly: true}, ObstacleSpokeOnly, Reserved{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.property.Obstacle(tc.reserved); got != tc.want {
				t.Errorf("Obstacle() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStripKeepsWhatReadReads(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   map[string]any
	}{
		"everything else is dropped": {
			want: map[string]any{
				"apiVersion": "about.k8s.io/v1beta1",
				"kind":       "ClusterProperty",
				"metadata":   map[string]any{"name": "location", "uid": "u1", "resourceVersion": "7"},
				"spec":       map[string]any{"value": "eu"},
			},
		},
		"the spoke-only label stays": {
			change: func(obj map[string]any) {
				obj["metadata"].(map[string]any)["labels"] = map[string]any{"open-cluster-management.io/spoke-only": "", "x": "y"}
			},
			want: map[string]any{
				"apiVersion": "about.k8s.io/v1beta1",
				"kind":       "ClusterProperty",
				"metadata": map[string]any{
					"name": "location", "uid": "u1", "resourceVersion": "7",
					"labels": map[string]any{"open-cluster-management.io/spoke-only": ""},
				},
				"spec": map[string]any{"value": "eu"},
			},
		},
		"a value that is too long stays just too long": {
			change: func(obj map[string]any) { obj["spec"] = map[string]any{"value": long} },
			want: map[string]any{
				"apiVersion": "about.k8s.io/v1beta1",
				"kind":       "ClusterProperty",
				"metadata":   map[string]any{"name": "location", "uid": "u1", "resourceVersion": "7"},
				"spec":       map[string]any{"value": long[:1025]},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stripped, err := Strip(object(tc.change))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, stripped.(*unstructured.Unstructured).Object); diff != "" {
				t.Errorf("stripped (-want +got):\n%s", diff)
			}
			again, err := Strip(stripped)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stripped, again); diff != "" {
				t.Errorf("a second pass changed something:\n%s", diff)
			}
		})
	}
}

func TestStripPassesOtherKinds(t *testing.T) {
	other := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}},
	}
	got, err := Strip(other)
	if err != nil {
		t.Fatal(err)
	}
	if got != any(other) {
		t.Errorf("Strip returned another object: %v", got)
	}
}
