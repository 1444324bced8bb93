package spoke

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

func TestFailureIsOneLine(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	apitest.Must(t, os.WriteFile(good, apitest.Kubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, ""), 0o600))
	missing := filepath.Join(dir, "missing")
	run := func(more ...string) []string {
		return append([]string{"run", "--cluster-name=c", "--addon-uid=u", "--install-namespace=n"}, more...)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command": {
			args: []string{}, code: 2, want: `agent: no command given: "run" or "cleanup"`,
		},
		"unknown command": {
			args: []string{"walk"}, code: 2, want: `agent: unknown command "walk" for "agent"`,
		},
		"unknown flag": {
			args: run("--nope"), code: 2, want: "agent: unknown flag: --nope",
		},
		"stray argument": {
			args: run("stray"), code: 2, want: `agent: unknown command "stray" for "agent run"`,
		},
		"value of the wrong type": {
			args: run("--claim-limit=many"), code: 2,
			want: `agent: invalid argument "many" for "--claim-limit" flag: strconv.ParseInt: parsing "many": invalid syntax`,
		},
		"every missing flag is named": {
			args: []string{"run"}, code: 2,
			want: "agent: --addon-uid: is required; --cluster-name: is required; --install-namespace: is required",
		},
		"every wrong flag is named": {
			args: []string{
				"run", "--cluster-name=C", "--addon-uid=u", "--install-namespace=n",
				"--claim-limit=-1", "--metrics-bind-address=8080"}, code: 2,
			want: `agent: --claim-limit: -1 is negative; ` +
				`--cluster-name: "C" is not a namespace name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ` +
				`and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'); ` +
				`--metrics-bind-address: "8080" is not host:port: address 8080: missing port in address`,
		},
		"a pattern that is none": {
			args: run("--reserved-properties=*.example.com,a["), code: 2,
			want: `agent: --reserved-properties: "a[" is not a pattern as in path.Match`,
		},
		"hook: every wrong flag is named": {
			args: []string{"cleanup", "--timeout=-1s"}, code: 2,
			want: "agent: --addon-uid: is required; --install-namespace: is required; --timeout: -1s is negative",
		},
		"kubeconfig of the spoke is not there": {
			args: run("--kubeconfig=" + missing), code: 1,
			want: `agent: reading kubeconfig "` + missing + `": open ` + missing + `: no such file or directory`,
		},
		"hosted, without a kubeconfig": {
			args: run("--hosted"), code: 2, want: "agent: --kubeconfig: is required",
		},
		"address that cannot be bound": {
			args: run("--kubeconfig="+good, "--hub-kubeconfig="+good, "--health-probe-bind-address=192.0.2.1:1"), code: 1,
			want: "agent: starting on the spoke: error listening on 192.0.2.1:1: listen tcp 192.0.2.1:1: bind: " +
				"cannot assign requested address",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Main(t.Context(), tc.args, &stderr)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.want+"\n", stderr.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsNeedOnlyTheAgentsIdentity(t *testing.T) {
	opts := newOptions()
	opts.ClusterName, opts.AddonUID, opts.InstallNamespace = "c", "u", "n"
	opts.complete()
	apitest.Must(t, opts.Validate())
	want := &Options{
		HubKubeconfig: "/var/run/hub/kubeconfig", ClusterName: "c", AddonUID: "u", InstallNamespace: "n", ClaimLimit: 20,
		HealthProbeBindAddress: ":8081", MetricsBindAddress: "0",
	}
	if diff := cmp.Diff(want, opts); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestAddressOfAnIPv6PodIsValid(t *testing.T) {
	opts := newOptions()
	opts.ClusterName, opts.AddonUID, opts.InstallNamespace = "c", "u", "n"
	opts.HealthProbeBindAddress = "fd00::17:8081"
	opts.complete()
	apitest.Must(t, opts.Validate())
	if opts.HealthProbeBindAddress != "[fd00::17]:8081" {
		t.Errorf("address = %s", opts.HealthProbeBindAddress)
	}
}

func TestHubAccessFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	agent := agentWithCertificate(t, certtest.NewCA(t, "users", time.Now().Add(time.Hour)), "")
	write := func(host string) {
		agent.Host = host
		apitest.Must(t, os.WriteFile(path, apitest.Kubeconfig(t, agent, ""), 0o600))
	}
	hub := &clusterAccess{path: path}
	if cfg, err := hub.current(); err == nil || cfg != nil {
		t.Fatalf("without a file: %v, %v", cfg, err)
	}
	write("https://one")
	one, err := hub.current()
	apitest.Must(t, err)
	write("https://one")
	if again, err := hub.current(); err != nil || again != one {
		t.Errorf("the same content is another way to the hub: %v", err)
	}
	apitest.Must(t, os.WriteFile(path, []byte("{"), 0o600))
	if kept, err := hub.current(); err == nil || kept != one {
		t.Errorf("broken content: %p, %v; want %p and an error", kept, err, one)
	}
	apitest.Must(t, os.Remove(path))
	if kept, err := hub.current(); err == nil || kept != one {
		t.Errorf("no file: %p, %v; want %p and an error", kept, err, one)
	}
	write("https://two")
	two, err := hub.current()
	apitest.Must(t, err)
	if two == one || !strings.HasSuffix(two.Host, "two") {
		t.Errorf("new content is not followed: %s", two.Host)
	}
}
