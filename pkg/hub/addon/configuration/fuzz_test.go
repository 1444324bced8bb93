package configuration

import (
	"strings"
	"testing"
)

// Whatever a configuration says about proxies, it is used only where it is harmless on an agent's
// command line and in its environment.
func FuzzProxySettings(f *testing.F) {
	f.Add(".cluster.local,10.0.0.0/8, *", []byte("-----BEGIN CERTIFICATE-----"))
	f.Add("\n0", []byte{})
	f.Add("a b\n", []byte("-----BEGIN PRIVATE KEY-----\nhalf of one\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, noProxy string, ca []byte) {
		var wrong fieldErrors
		hosts := validateNoProxy("noProxy", noProxy, &wrong)
		if len(wrong) == 0 && strings.ContainsAny(hosts, " \t\n\v\f\r\x00$\"'") {
			t.Errorf("accepted: %q of %q", hosts, noProxy)
		}
		bundle := validateCA("caBundle", ca, &wrong)
		if strings.Contains(bundle, "PRIVATE KEY") {
			t.Errorf("accepted: %q", bundle)
		}
		if len(bundle) > len(ca)+1000 {
			t.Errorf("%d bytes became %d", len(ca), len(bundle))
		}
	})
}

// Any annotation about a cluster's registries results in an image with the same tag and
// digest, or in a short error that quotes nothing.
func FuzzRegistries(f *testing.F) {
	f.Add(`{"registries":[{"source":"quay.io/ocm","mirror":"mirror.example.com:5000/ocm"}]}`)
	f.Add(`{"registries":[{"mirror":"mirror.example.com/"},{"source":"quay.io","mirror":"https://user:password@m"}]}`)
	f.Add(`{"registries":[{"source":"quay.io","mirror":"a"}]}{"registries":[]}`)
	f.Add(`[`)
	const name, version = "quay.io/ocm/agent", ":v1@sha256:0123"
	f.Fuzz(func(t *testing.T, annotation string) {
		registries, wrong := validateAnnotation(annotation)
		if len(wrong) > 0 && len(registries) > 0 {
			t.Errorf("%d registries are used in spite of %q", len(registries), wrong)
		}
		for _, text := range wrong {
			if len(text) > 300 || strings.Contains(text, "password") {
				t.Errorf("error %q", text)
			}
		}
		image := mirrored(name+version, registries)
		if got, kept := splitImage(image); kept != version || len(registries) > 0 && !repository.MatchString(got) {
			t.Errorf("image %q", image)
		}
		if len(registries) == 0 && image != name+version {
			t.Errorf("image %q of no registries", image)
		}
		if isFrom(image, []string{"quay.io/oc"}) {
			t.Errorf("image %q counts as one of quay.io/oc", image)
		}
	})
}
