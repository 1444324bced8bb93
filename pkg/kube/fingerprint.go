package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fingerprint identifies a part of an object, for a Brake that other parts do not concern.
// Equal parts have equal fingerprints. A part that JSON cannot encode, which no object of the
// API has, is identified by the object's version.
func Fingerprint(obj metav1.Object, part ...any) string {
	encoded, err := json.Marshal(part)
	if err != nil {
		return obj.GetResourceVersion()
	}
	hash := sha256.Sum256(encoded)
	return hex.EncodeToString(hash[:16])
}
