package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// convertedKinds are those of which Open Cluster Management serves two versions with different
// fields: its addon manager uses v1alpha1, which is stored, and this addon v1beta1.
var convertedKinds = []string{
	"clustermanagementaddons.addon.open-cluster-management.io",
	"managedclusteraddons.addon.open-cluster-management.io",
}

// convert makes a new hub serve these kinds in both versions, with Open Cluster Management's
// webhooks, which run until the test ends.
func (l *lane) convert() {
	l.tb.Helper()
	folder := l.upstreamFolder(l.tb)
	until := time.Now().Add(7 * 24 * time.Hour)
	ca := certtest.NewCA(l.tb, "webhooks", until)
	serving := certtest.Issue(l.tb, ca, x509.Certificate{
		Subject: pkix.Name{CommonName: "webhooks"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
	})
	certificate := apitest.File(l.tb, "tls.crt", serving.PEM())
	key := filepath.Join(filepath.Dir(certificate), "tls.key")
	apitest.Must(l.tb, os.WriteFile(key, serving.KeyPEM(l.tb), 0o600))
	kubeconfig := apitest.File(l.tb, "kubeconfig", apitest.Kubeconfig(l.tb, l.server.Config(l.tb), ""))
	port := freePort()
	webhooks := &program{
		commands: func() []*exec.Cmd {
			return []*exec.Cmd{exec.Command(filepath.Join(folder, "ocm"), "webhooks", "server",
				"--kubeconfig="+kubeconfig, "--certdir="+filepath.Dir(certificate),
				fmt.Sprintf("--port=%d", port), "--health-probe-bind-address=0")}
		},
		lost: func() {},
	}
	l.tb.Cleanup(func() {
		webhooks.stop()
		if exits, _, err := webhooks.report(); len(exits) > 0 || err != nil {
			l.tb.Logf("the webhooks ended by themselves: %v %v", exits, err)
		}
	})
	apitest.Must(l.tb, webhooks.start())
	address := fmt.Sprintf("127.0.0.1:%d", port)
	apitest.Eventually(l.tb, apitest.RestartPatience, "the webhooks answer", func() string {
		ctx, cancel := context.WithTimeout(l.tb.Context(), time.Second)
		defer cancel()
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // only whether it answers
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err.Error()
		}
		_ = connection.Close()
		return ""
	})
	l.server.Install(l.tb, converted("https://"+address+"/convert", ca.PEM()))
}

// converted are the definitions of these kinds as Open Cluster Management's operator installs
// them.
func converted(url string, ca []byte) apitest.CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		all, err := apitest.HubInAllVersions()()
		all = slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return !slices.Contains(convertedKinds, crd.Name)
		})
		for _, crd := range all {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
					ConversionReviewVersions: []string{"v1", "v1beta1"},
				},
			}
		}
		return all, err
	}
}
