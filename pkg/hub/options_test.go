package hub

import (
	"testing"
	"time"
)

func TestOptionsErrorsNameTheFlag(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"good options": {change: func(*Options) {}},
		"servers off": {change: func(o *Options) {
			o.HealthProbeBindAddress, o.Metrics.BindAddress = "0", "0"
		}},
		"no election, no namespace": {change: func(o *Options) { o.LeaderElect, o.LeaderElectNamespace = false, "" }},
		"two errors are both reported, in one line": {
			change: func(o *Options) { o.CleanupJobTimeout, o.CleanupTimeout = -1, -time.Second },
			want:   "--cleanup-job-timeout: -1ns is not positive; --cleanup-timeout: -1s is not positive",
		},
		"no time for the clean-up Job": {
			change: func(o *Options) { o.CleanupJobTimeout = 0 },
			want:   "--cleanup-job-timeout: 0s is not positive",
		},
		"no workers": {
			change: func(o *Options) { o.Workers, o.WorkersPerNamespace = 0, -1 },
			want:   "--workers-per-namespace: -1 is not positive; --workers: 0 is not positive",
		},
		"gates that are neither": {
			change: func(o *Options) { o.UpstreamGates = "on" },
			want:   `--upstream-gates: "on" is neither "auto" nor "off"`,
		},
		"broken pattern": {
			change: func(o *Options) { o.LabelAllow = []string{"ok/*", "[a"} },
			want:   `--label-allow: "[a" is not a pattern as in path.Match`,
		},
		"limits that let nothing through, or more than fits": {
			change: func(o *Options) { o.Limits.Properties, o.Limits.PropertyBytes = 0, 1<<20 },
			want:   "--max-properties: 0 is not between 1 and 5000; --max-property-bytes: 1048576 is not between 1 and 524288",
		},
		"labels that are reserved, or no labels": {
			change: func(o *Options) { o.Limits.PropertyLabels = []string{"region.example.com", "id.k8s.io", "a b"} },
			want: `--property-label: "a b" is not a label key: name part must consist of alphanumeric characters, '-', '_' or ` +
				`'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', ` +
				`regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); ` +
				`--property-label: "id.k8s.io" is reserved: no label of k8s.io or a domain below comes from a property`,
		},
		"writes that never wait": {
			change: func(o *Options) { o.WriteInterval = 0 },
			want:   "--profile-write-interval: 0s is not between 100ms and 30s",
		},
		"writes that wait for too long": {
			change: func(o *Options) { o.WriteInterval = 31 * time.Second },
			want:   "--profile-write-interval: 31s is not between 100ms and 30s",
		},
		"a mode that is none": {
			change: func(o *Options) { o.CredentialsMode = "on" },
			want:   `--credentials-mode: "on" is not one of enabled, draining, disabled`,
		},
		"a registry that is a URL": {
			change: func(o *Options) { o.AgentAllowedRegistries = []string{"m:5000/ocm", "https://m.example.com/"} },
			want:   `--allowed-registry: "https://m.example.com/" is not a registry or a registry path`,
		},
		"a syncer that is neither": {
			change: func(o *Options) { o.CredentialsUpstreamSyncer = "on" },
			want:   `--credentials-upstream-syncer: "on" is neither "auto" nor "off"`,
		},
		"no subject to give rights to": {
			change: func(o *Options) { o.CredentialsServiceAccount = "/manager" },
			want: `--credentials-service-account: "/manager" is not namespace/name; $POD_NAMESPACE ` +
				`gives the namespace in a pod`,
		},
		"no subject to give rights to, and no rights to give": {
			change: func(o *Options) { o.CredentialsMode, o.CredentialsServiceAccount = "disabled", "/manager" },
		},
		"address without port": {
			change: func(o *Options) { o.Metrics.BindAddress = "127.0.0.1" },
			want:   `--metrics-bind-address: "127.0.0.1" is not host:port: address 127.0.0.1: missing port in address`,
		},
		"certificates that are not there": {
			change: func(o *Options) { o.Metrics.CertDir = "/nowhere" },
			want: "--metrics-cert-dir: stat /nowhere/tls.crt: no such file or directory; " +
				"--metrics-cert-dir: stat /nowhere/tls.key: no such file or directory",
		},
		"certificates for plain text": {
			change: func(o *Options) { o.Metrics.CertDir, o.Metrics.Secure = "/nowhere", false },
			want:   "--metrics-cert-dir: has no effect with --metrics-secure=false",
		},
		"profiles of memory nowhere": {
			change: func(o *Options) { o.PprofBindAddress = "localhost" },
			want:   `--pprof-bind-address: "localhost" is not host:port: address localhost: missing port in address`,
		},
		"election nowhere": {
			change: func(o *Options) { o.LeaderElectNamespace = "" },
			want:   "--leader-elect-namespace: is required when $POD_NAMESPACE is not set",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts := newOptions()
			opts.LeaderElectNamespace = "open-cluster-management"
			opts.CredentialsServiceAccount = "open-cluster-management/manager"
			test.change(opts)
			opts.complete()
			got := ""
			if err := opts.validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
