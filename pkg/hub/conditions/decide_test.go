package conditions

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	have := func(conditionType, status, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}
	}
	is := func(status, reason, message string) *Desired {
		return &Desired{Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
	}
	heldBack := func(d *Desired) *Desired { d.HoldBack = 5 * time.Second; return d }
	wants := func(conditionType string, d *Desired) wanted {
		return wanted{conditionType: conditionType, Desired: d, since: now}
	}
	since := func(w wanted, ago time.Duration) wanted { w.since = now.Add(-ago); return w }
	good, both := is("True", "Good", "g"),
		[]metav1.Condition{have("A", "True", "Good", "g"), have("B", "True", "Good", "g")}
	tests := map[string]struct {
		have     []metav1.Condition
		isSetUp  bool
		age      time.Duration
		want     []wanted
		write    []string
		againSec float64
	}{
		"born: both at once, once the framework has set the addon up": {
			isSetUp: true, want: []wanted{wants("A", good), wants("B", good)}, write: []string{"A", "B"},
		},
		"not set up yet: wait, for a minute at most": {
			age: 10 * time.Second, want: []wanted{wants("A", good), wants("B", good)}, againSec: 50,
		},
		"never set up: written after a minute": {
			age: time.Minute, want: []wanted{wants("A", good), wants("B", good)}, write: []string{"A", "B"},
		},
		"one is not known yet: the other waits for it": {
			isSetUp: true, want: []wanted{wants("A", good), wants("B", nil)}, againSec: 30,
		},
		"one is held back: the other waits for it": {
			isSetUp: true, want: []wanted{since(wants("A", heldBack(is("Unknown", "U", ""))), 2*time.Second), wants("B", good)},
			againSec: 3,
		},
		"one stays unknown: the other waits for a minute": {
			isSetUp: true, age: time.Minute, want: []wanted{wants("A", good), wants("B", nil)},
			write: []string{"A"}, againSec: 30,
		},
		"the hub's clock is a little ahead: the other waits nevertheless": {
			isSetUp: true, age: -time.Minute, want: []wanted{wants("A", good), wants("B", nil)}, againSec: 30,
		},
		"the hub's clock is an hour ahead: nothing waits for its time": {
			isSetUp: true, age: -time.Hour, want: []wanted{wants("A", good), wants("B", nil)},
			write: []string{"A"}, againSec: 30,
		},
		"its clock is an hour ahead, and the framework is slow": {
			age: -time.Hour, want: []wanted{wants("A", good), wants("B", good)}, write: []string{"A", "B"},
		},
		"both are as they must be": {
			have: both, want: []wanted{wants("A", good), wants("B", good)},
		},
		"one is wrong": {
			have: both, want: []wanted{wants("A", is("False", "Bad", "b")), wants("B", good)}, write: []string{"A"},
		},
		"another message": {
			have: both, want: []wanted{wants("A", is("True", "Good", "h")), wants("B", good)}, write: []string{"A"},
		},
		"one is not known: it stays, the other is written": {
			have: both, want: []wanted{wants("A", nil), wants("B", is("False", "Bad", "b"))}, write: []string{"B"}, againSec: 30,
		},
		"what may pass is held back": {
			have: both, want: []wanted{wants("A", heldBack(is("Unknown", "U", "u"))), wants("B", good)}, againSec: 5,
		},
		"what may pass has not passed": {
			have: both, want: []wanted{since(wants("A", heldBack(is("Unknown", "U", "u"))), 5*time.Second), wants("B", good)},
			write: []string{"A"},
		},
		"another client dropped one: it is added again": {
			have: both[1:], isSetUp: true, want: []wanted{wants("A", good), wants("B", good)}, write: []string{"A"},
		},
		"one must not be there: the other does not wait for it": {
			isSetUp: true, want: []wanted{wants("A", &Desired{Absent: true}), wants("B", good)}, write: []string{"B"},
		},
		"one must not be there, and is": {
			have: both, want: []wanted{wants("A", &Desired{Absent: true}), wants("B", good)}, write: []string{"A"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{}
			addon.CreationTimestamp = metav1.NewTime(now.Add(-test.age))
			// TestDegraded is about this one.
			degraded := have("Degraded", "False", "AsExpected", "None of this addon's own conditions is False.")
			addon.Status.Conditions = append(slices.Clone(test.have), degraded)
			if test.isSetUp {
				addon.Status.HealthCheck.Mode = "Customized"
			}
			write, again := decide(addon, test.want, wanted{}, now)
			var types []string
			for _, w := range write {
				types = append(types, w.conditionType)
			}
			if diff := cmp.Diff(test.write, types); diff != "" {
				t.Errorf("to write (-want +got):\n%s", diff)
			}
			if again.Seconds() != test.againSec {
				t.Errorf("again after %s, want %gs", again, test.againSec)
			}
		})
	}
}
