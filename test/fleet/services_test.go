package fleet

import (
	"testing"
)

func TestHostAddress(t *testing.T) {
	hosts := "127.20.129.1 kubernetes.default.svc.cluster.local kubernetes.default.svc\n127.20.129.2 user.ns.svc user.ns\n\n"
	for name, want := range map[string]string{
		"user.ns": "127.20.129.2", "kubernetes.default.svc": "127.20.129.1", "user": "", "127.20.129.1": "",
	} {
		if got := hostAddress(hosts, name); got != want {
			t.Errorf("%s has %q: want %q", name, got, want)
		}
	}
}
