package access

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// Whatever a Secret or a ConfigMap holds as certificates, what is published of it is
// certificates, bounded, and the same when it is read again.
func FuzzCertificates(f *testing.F) {
	ca := certtest.NewCA(f, "a", time.Now().Add(time.Hour))
	f.Add(ca.PEM())
	f.Add(append(ca.PEM(), ca.KeyPEM(f)...))
	f.Add(append([]byte("-----BEGIN PRIVATE KEY-----\nhalf of one\n"), ca.PEM()...))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	f.Fuzz(func(t *testing.T, text []byte) {
		if kept := onlyCertificates(text); bytes.Contains(kept, []byte("PRIVATE KEY")) {
			t.Errorf("a key is kept: %q", kept)
		}
		bundle, err := ParseCA(text)
		if err != nil {
			return
		}
		again, err := ParseCA(bundle)
		if err != nil || !bytes.Equal(bundle, again) {
			t.Errorf("read again: %v\n%q\n%q", err, bundle, again)
		}
		if len(bundle) > 32<<10 || bytes.Contains(bundle, []byte("PRIVATE KEY")) {
			t.Errorf("%d bytes are published", len(bundle))
		}
	})
}

// Any ConfigMap of a cluster results in an address to be trusted, or in a short error.
func FuzzDirectEntry(f *testing.F) {
	ca := strings.ReplaceAll("\n"+string(certtest.NewCA(f, "a", time.Now().Add(time.Hour)).PEM()), "\n", "\n  ")
	f.Add("fromManagedCluster: true")
	f.Add("server: https://c1.example.com\ncertificateAuthority: |" + ca)
	f.Add("server: http://user:password@c1?a#b\ncertificateAuthority: x")
	f.Add("{server: [1], unknown: &a [*a]}")
	f.Fuzz(func(t *testing.T, text string) {
		entry, err := parseDirect(text)
		switch {
		case err != nil:
			if len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
		case entry.fromManagedCluster:
			if entry.server != "" || entry.ca != "" {
				t.Errorf("%+v", entry)
			}
		default:
			_, caErr := ParseCA([]byte(entry.ca))
			if !strings.HasPrefix(strings.ToLower(entry.server), "https://") || CheckURL(entry.server) != nil || caErr != nil {
				t.Errorf("%+v: %v", entry, caErr)
			}
		}
	})
}

// No matter what another client's entry holds, ours is added next to it or replaces it, and adding
// it again changes nothing.
func FuzzMergedProviders(f *testing.F) {
	f.Add("open-cluster-management", "https://theirs", []byte(`{"clusterName":"c1"}`))
	f.Add("other", "", []byte(`{"a":`))
	f.Fuzz(func(t *testing.T, name, server string, extension []byte) {
		theirs := inventoryv1alpha1.AccessProvider{Name: name}
		theirs.Cluster.Server = server
		theirs.Cluster.Extensions = []clientcmdv1.NamedExtension{{Name: name, Extension: runtime.RawExtension{Raw: extension}}}
		ours := provider("open-cluster-management", "https://ours", []byte("CA"), "c1")
		decision := Decision{
			Proxy: ProviderState{Known: true, Provider: &ours}, Direct: ProviderState{Known: true},
		}
		once := Merge([]inventoryv1alpha1.AccessProvider{theirs}, "c1", decision)
		twice := Merge(once, "c1", decision)
		if len(once) != len(twice) {
			t.Errorf("%d entries, then %d", len(once), len(twice))
		}
		found := 0
		for _, entry := range once {
			if entry.Name == ours.Name {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d entries named %s", found, ours.Name)
		}
	})
}
