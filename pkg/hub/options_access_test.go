package hub

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestAccessOptionsErrorsNameTheFlag(t *testing.T) {
	ca := certtest.NewCA(t, "ca", time.Now().Add(time.Hour))
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, key := file("good", ca.PEM()), file("key", append(ca.PEM(), ca.KeyPEM(t)...))
	none := filepath.Join(dir, "none")

	tests := map[string]struct {
		change func(*AccessOptions)
		want   string
		bundle []byte
	}{
		"as they are": {change: func(*AccessOptions) {}},
		"another address": {
			change: func(o *AccessOptions) {
				o.URL, o.CAFile = "https://proxy.example.com:8443/prefix", good
			},
			bundle: ca.PEM(),
		},
		"an address without TLS": {
			change: func(o *AccessOptions) { o.URL = "http://proxy.example.com" },
			want:   `--access-cluster-proxy-url: "http://proxy.example.com" is not an https URL`,
		},
		"a namespace that cannot be": {
			change: func(o *AccessOptions) { o.Namespace = "" },
			want: `--access-cluster-proxy-namespace: "" is not a namespace name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ` +
				`and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation ` +
				`is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		},
		"a name that cannot be": {
			change: func(o *AccessOptions) { o.Configuration = "x_y" },
			want: `--access-cluster-proxy-configuration: "x_y" is not a name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		"a file that is not there": {
			change: func(o *AccessOptions) { o.CAFile = none },
			want:   "--access-cluster-proxy-ca-file: open " + none + ": no such file or directory",
		},
		"a file with a key in it": {
			change: func(o *AccessOptions) { o.CAFile = key },
			want:   `--access-cluster-proxy-ca-file: "` + key + `" has a block "EC PRIVATE KEY" among its certificates`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newAccessOptions()
			test.change(&o)
			var errs kube.FlagErrors
			o.validate(&errs)
			got := ""
			if err := errs.Err(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if bundle := o.CABundle; !bytes.Equal(bundle, test.bundle) {
				t.Errorf("bundle %q", bundle)
			}
		})
	}
}
