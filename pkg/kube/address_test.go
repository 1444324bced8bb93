package kube

import "testing"

func TestBindAddress(t *testing.T) {
	for name, tc := range map[string]struct{ address, want string }{
		"off stays off":                   {"0", "0"},
		"port on every interface":         {":8081", ":8081"},
		"IPv4":                            {"10.1.2.3:8081", "10.1.2.3:8081"},
		"bare IPv6 gets brackets":         {"fd00::17:8081", "[fd00::17]:8081"},
		"IPv6 with brackets stays":        {"[fd00::17]:8081", "[fd00::17]:8081"},
		"no port is left to fail visibly": {"localhost", "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := BindAddress(tc.address); got != tc.want {
				t.Errorf("BindAddress(%q) = %q, want %q", tc.address, got, tc.want)
			}
		})
	}
}
