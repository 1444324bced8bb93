package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFingerprintIsThatOfThePart(t *testing.T) {
	one := &metav1.ObjectMeta{ResourceVersion: "1", Labels: map[string]string{"a": "1", "b": "2"}}
	same := &metav1.ObjectMeta{ResourceVersion: "2", Labels: map[string]string{"b": "2", "a": "1"}}
	if Fingerprint(one, one.Labels, "x") != Fingerprint(same, same.Labels, "x") {
		t.Error("equal parts have different fingerprints")
	}
	other := map[string]string{"a": "1", "b": "3"}
	for name, part := range map[string][]any{
		"another value": {other, "x"}, "another order": {"x", one.Labels}, "less": {one.Labels},
	} {
		if Fingerprint(one, part...) == Fingerprint(one, one.Labels, "x") {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
	if got := Fingerprint(one, func() {}); got != "1" {
		t.Errorf("what cannot be encoded has the fingerprint %q, want the version", got)
	}
}
