package extremes

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/memhub"
)

// commands are all that read a hub.
var commands = [][]string{
	{"list"}, {"list", "-A", "--count-by", "tier"}, {"list", "-o", "json"}, {"matrix"}, {"matrix", "--tokens"},
	{"explain", "east"}, {"explain", "east", "tier"}, {"describe", "east"}, {"doctor"}, {"diff"}, {"rollout"},
	{"kubeconfig", "--account", "reader", "--output", "FILE"},
	{"kubeconfig", "east", "--account", "reader", "--output", "FILE"},
	{"check-access", "east", "--account", "reader"},
}

// Whatever a hub does, each command ends with one line that says so and with exit code 2, and has
// printed nothing before.
func TestHubsThatFail(t *testing.T) {
	of := func(resource string, code int) func(*http.Request) int {
		return func(r *http.Request) int {
			if strings.Contains(r.URL.Path, resource) {
				return code
			}
			return 0
		}
	}
	all := func(code int) func(*http.Request) int { return func(*http.Request) int { return code } }
	for name, test := range map[string]struct {
		fault func(*http.Request) int
		says  []string // one of these
		// others are commands that need nothing of what fails.
		others []string
	}{
		"a hub that disconnects": {all(memhub.HangUp), []string{"see whether"}, nil},
		"a hub that disconnects after a while": {
			of("clusterprofiles", memhub.HangUp), []string{"see whether"}, []string{"rollout"},
		},
		"a hub that is busy": {all(http.StatusServiceUnavailable), []string{"try again"}, nil},
		"no login":           {all(http.StatusUnauthorized), []string{"does not accept your credentials"}, nil},
		"no rights": {
			all(http.StatusForbidden), []string{"you may not", "visible to you"}, nil,
		},
		"an old hub, which serves addons in an older version only": {
			of("addon.open-cluster-management.io/v1beta1", http.StatusNotFound),
			[]string{"it is not a hub of Open Cluster Management 1.2.1 or later"},
			[]string{"list", "kubeconfig", "check-access", "explain", "describe", "doctor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := ofHostile(t, "text")
			h.Fault = test.fault
			u := newUser(t, h)
			t.Setenv(asPlugin, u.peak())
			for _, command := range commands {
				if slices.Contains(test.others, command[0]) {
					continue
				}
				run := u.runHere
				if name == "a hub that goes away" {
					run = u.run // libraries must not write to the process's stderr either
				}
				got := run(t, command...)
				if got.code != 2 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || !says(got.stderr, test.says) {
					t.Errorf("%v: exit code %d, want one line with one of %q: %.500s%.500s",
						command, got.code, test.says, got.stdout, got.stderr)
				}
			}
		})
	}
}

func says(text string, texts []string) bool {
	return slices.ContainsFunc(texts, func(one string) bool { return strings.Contains(text, one) })
}
