package conditions

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestDesiredFirst(t *testing.T) {
	at := metav1.NewTime(time.Unix(2, 0).UTC())
	got := desiredFirst([]wanted{
		{conditionType: "A", Desired: &Desired{Status: "True", Reason: "R", Message: "m"}},
		{conditionType: "B", Desired: &Desired{Status: "False", Reason: "S", Message: "n"}},
	}, time.Unix(2, 500).UTC())
	want := map[string]any{"status": map[string]any{"conditions": []metav1.Condition{
		{Type: "A", Status: "True", Reason: "R", Message: "m", LastTransitionTime: at},
		{Type: "B", Status: "False", Reason: "S", Message: "n", LastTransitionTime: at},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestDesiredOperations(t *testing.T) {
	early, now := time.Unix(1, 0).UTC(), time.Unix(2, 500).UTC()
	have := func(types ...string) []metav1.Condition {
		var list []metav1.Condition
		for _, conditionType := range types {
			list = append(list, metav1.Condition{
				Type: conditionType, Status: "True", Reason: "R", LastTransitionTime: metav1.NewTime(early),
			})
		}
		return list
	}
	is := func(conditionType, status string) wanted {
		return wanted{conditionType: conditionType,
			Desired: &Desired{Status: metav1.ConditionStatus(status), Reason: "R", Message: "m"}}
	}
	absent := func(conditionType string) wanted {
		return wanted{conditionType: conditionType, Desired: &Desired{Absent: true}}
	}
	const lock = `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
	value := func(conditionType, status, since string) string {
		return `{"type":"` + conditionType + `","status":"` + status +
			`","lastTransitionTime":"1970-01-01T00:00:0` + since + `Z","reason":"R","message":"m"}`
	}
	tests := map[string]struct {
		have  []metav1.Condition
		write []wanted
		want  string
	}{
		"new, next to others": {
			have: have("X", "Y"), write: []wanted{is("A", "True")},
			want: lock + `,{"op":"add","path":"/status/conditions/-","value":` + value("A", "True", "2") + `}`,
		},
		"another status: a new time": {
			have: have("X", "A"), write: []wanted{is("A", "False")},
			want: lock + `,{"op":"replace","path":"/status/conditions/1","value":` + value("A", "False", "2") + `}`,
		},
		"another text: the time stays": {
			have: have("X", "A"), write: []wanted{is("A", "True")},
			want: lock + `,{"op":"replace","path":"/status/conditions/1","value":` + value("A", "True", "1") + `}`,
		},
		"some go: after what is changed by position, and from the end": {
			have: have("A", "X", "B", "C"), write: []wanted{absent("A"), absent("B"), is("C", "False")},
			want: lock + `,{"op":"replace","path":"/status/conditions/3","value":` + value("C", "False", "2") + `}` +
				`,{"op":"remove","path":"/status/conditions/2"},{"op":"remove","path":"/status/conditions/0"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
			addon.Status.Conditions = test.have
			got, err := json.Marshal(desiredOperations(addon, test.write, now))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+test.want+"]", string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
