package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const root = "../.."

// Every added right must be listed in docs/security.md, where reviewers see it.
func TestTheTableOfRightsIsThatOfChartAndManifests(t *testing.T) {
	grants, err := allGrants(hubtest.MustRender(t, ""))
	apitest.Must(t, err)
	if findings := validateGrants(grants, known); len(findings) > 0 {
		t.Errorf("rights: %s", strings.Join(findings, "\n"))
	}
	var byValue []grant
	for _, values := range []string{"agent: {hosted: {enabled: true}}", "credentials: {mode: disabled}"} {
		others, err := allGrants(hubtest.MustRender(t, values))
		apitest.Must(t, err)
		byValue = append(byValue, slices.DeleteFunc(others, func(g grant) bool {
			return slices.ContainsFunc(grants, func(other grant) bool {
				return cmp.Equal(g, other, cmp.AllowUnexported(grant{}, scope{}))
			})
		})...)
	}
	if diff := cmp.Diff(known.byValue, byValue, cmp.AllowUnexported(grant{}, scope{})); diff != "" {
		t.Errorf("rights with other values (-want +got):\n%s", diff)
	}
	holders := map[string]bool{}
	for _, g := range grants {
		holders[g.who] = true
	}
	if len(holders) != 6 || len(grants) < 40 {
		t.Errorf("found only %d rights, of %v", len(grants), holders)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	apitest.Must(t, err)
	want, err := withTable(string(page), tableOf(grants, known))
	apitest.Must(t, err)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(page), "\n")); diff != "" {
		t.Errorf("docs/security.md is out of date, run make generate (-want +got):\n%s", diff)
	}
}

// A right that the journeys do not use is exercised by another test.
func TestEveryRareRightHasATest(t *testing.T) {
	var tests strings.Builder
	for _, folder := range []string{"charts", "pkg", "test/e2e"} {
		apitest.Must(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			tests.Write(content)
			return err
		}))
	}
	for _, e := range known.rare {
		if e.test == "" || !strings.Contains(tests.String(), "func "+e.test+"(t *testing.T)") {
			t.Errorf("%s: there is no test %q", e.name(strings.Join(e.verbs, ", ")), e.test)
		}
	}
	for _, e := range known.all() {
		if e.reason == "" {
			t.Errorf("%s: there is no reason", e.name(strings.Join(e.verbs, ", ")))
		}
	}
}

// Consumers who follow the guide grant cp-creds what it uses, and no more.
func TestTheGuideGrantsWhatThePluginUses(t *testing.T) {
	file, err := os.Open(filepath.Join(root, "docs", "quickstart", "team.yaml"))
	apitest.Must(t, err)
	defer func() { _ = file.Close() }()
	objects, err := manifesttest.Decode(file)
	apitest.Must(t, err)
	for _, object := range objects {
		if object.GetKind() != "Role" {
			continue
		}
		got, err := rulesOf(object, grant{who: plugin, where: pluginGrant.where})
		apitest.Must(t, err)
		isOnSecrets := func(g grant) bool { return g.about(pluginGrant.group, pluginGrant.resource) }
		at := slices.IndexFunc(got, isOnSecrets)
		if at < 0 || !slices.Equal(got[at].verbs, pluginGrant.verbs) {
			t.Errorf("it grants %+v", got)
		}
		return
	}
	t.Error("the guide has no Role")
}

func TestOnlyThisAddonGetsRights(t *testing.T) {
	const account = `{apiVersion: v1, kind: ServiceAccount,
		metadata: {name: cluster-inventory-manager, namespace: ns}}` + "\n---\n"
	const role = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME},
		rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}` + "\n---\n"
	binding := func(role, subject string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "` + role + `"},
			subjects: [` + subject + "]}\n"
	}
	const (
		own     = "{kind: ServiceAccount, name: cluster-inventory-manager, namespace: ns}"
		another = "{kind: ServiceAccount, name: default, namespace: ns}"
		theirs  = "{kind: ServiceAccount, name: cluster-inventory-manager, namespace: team}"
		group   = "{kind: Group, name: cluster-inventory-manager}"

		later    = "open-cluster-management:cluster-inventory:token-source"
		stranger = "no account of this addon"
	)
	named := func(name string) string { return account + strings.Replace(role, "NAME", `"`+name+`"`, 1) }
	tests := map[string]struct{ objects, want string }{
		"the manager":                     {named("r") + binding("r", own), ""},
		"no subject":                      {named("r"), "no subject is bound to ClusterRole r"},
		"a group":                         {named("r") + binding("r", group), stranger},
		"another account":                 {named("r") + binding("r", own+", "+another), stranger},
		"an account of another namespace": {named("r") + binding("r", theirs), stranger},

		"a role that is to be bound later":          {named(later), ""},
		"a role that is to be bound later, at once": {named(later) + binding(later, own), "is bound at once"},
		"a role with rules of others": {
			strings.Replace(named("r"), "rules:", "aggregationRule: {clusterRoleSelectors: [{}]}, rules:", 1) +
				binding("r", own), "gets rules from others",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := manifesttest.Decode(strings.NewReader(test.objects))
			apitest.Must(t, err)
			grants, err := grantsOf(objects)
			switch {
			case test.want == "" && (err != nil || len(grants) != 1):
				t.Errorf("grants %v, error %v", grants, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestThePageIsWrittenBetweenTheLines(t *testing.T) {
	const before, after = "a\n" + tableBegin, tableEnd + "z\n"
	once, err := withTable(before+"old\n"+after, "| t |\n")
	apitest.Must(t, err)
	twice, err := withTable(once, "| t |\n")
	apitest.Must(t, err)
	if want := before + "\n| t |\n\n" + after; once != want || twice != want {
		t.Errorf("the page is %q, and then %q", once, twice)
	}
	for _, page := range []string{"", before, after} {
		if _, err := withTable(page, ""); err == nil {
			t.Errorf("the page %q has no place for the table, and it was written", page)
		}
	}
}
