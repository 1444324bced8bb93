package main

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Others' consumers take long to build: they run on request, and then alone.
func TestOthersConsumersRunOnlyOnRequest(t *testing.T) {
	t.Chdir("../..")
	const consumers = ownModule + "test/e2e/journeys/consumers"
	for mode, want := range map[string]bool{"e2e": false, "consumers": true} {
		chosen, err := jobs(mode)
		if err != nil {
			t.Fatal(err)
		}
		packages, err := chosen[0][0].list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(packages, consumers); got != want || len(packages) == 0 || want && len(packages) > 1 {
			t.Errorf("%s runs %v", mode, packages)
		}
	}
}

// A test runs again in the module of its package, and only that test.
func TestATestRunsAgainInItsModule(t *testing.T) {
	chosen, err := jobs("all")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, module := range map[string]string{
		"pkg/hub/credentials":      ".",
		"test/e2e/journeys/access": "test/e2e",
		"test/faults/proxy":        "test/faults",
		"test/fleet":               "test/fleet",
		"test/fleeting":            ".",
	} {
		got, err := again(chosen, "-test.run=^TestX$", ownModule+pkg)
		if err != nil {
			t.Errorf("%s: %v", pkg, err)
		}
		want := suite{module: module, packages: []string{ownModule + pkg}, only: "^TestX$"}
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(suite{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pkg, diff)
		}
	}
	for name, args := range map[string][2]string{
		"a package that failed outside its tests": {"-test.run=^$", ownModule + "pkg/hub"},
		"another project's package":               {"-test.run=^TestX$", "example.com/pkg"},
		"no test":                                 {"-short", ownModule + "pkg/hub"},
	} {
		if got, err := again(chosen, args[0], args[1]); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// storiesIn returns how often the suites run each journey: all journeys by their package and name.
func storiesIn(t *testing.T, suites ...suite) map[string]int {
	t.Helper()
	runs := map[string]int{}
	for _, s := range suites {
		packages, err := s.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		skipped := regexp.MustCompile(cmp.Or(s.skip, "^$"))
		for _, name := range packages {
			for _, test := range testsIn(t, strings.TrimPrefix(name, ownModule)) {
				if !skipped.MatchString(test) {
					runs[path.Base(name)+" "+test]++
				}
			}
		}
	}
	return runs
}

// testsIn are the names of the tests in a folder of the repository.
func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(content, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

// journeysOf are the journeys that a mode runs.
func journeysOf(t *testing.T, mode string) map[string]int {
	t.Helper()
	chosen, err := jobs(mode)
	if err != nil {
		t.Fatal(err)
	}
	var suites []suite
	for _, s := range slices.Concat(chosen...) {
		if s.module == "test/e2e" && !slices.Contains(s.without, "/journeys") {
			suites = append(suites, s)
		}
	}
	return storiesIn(t, suites...)
}

// Only e2e runs all journeys but those of others' consumers; test runs all but those that are
// named. No journey runs twice.
func TestJourneysRunOnce(t *testing.T) {
	t.Chdir("../..")
	whole := map[string]int{}
	for journey := range storiesIn(t, suite{module: "test/e2e", packages: []string{"./journeys/..."}}) {
		if !strings.HasPrefix(journey, "consumers ") {
			whole[journey] = 1
		}
	}
	if diff := gocmp.Diff(whole, journeysOf(t, "e2e")); diff != "" || len(whole) < 60 {
		t.Errorf("e2e runs (-want +got):\n%s", diff)
	}
	for journey := range whole {
		folder, name, _ := strings.Cut(journey, " ")
		if _, isRepeated := repeated[name]; isRepeated || slices.Contains(slow, "/journeys/"+folder) {
			delete(whole, journey)
		}
	}
	if diff := gocmp.Diff(whole, journeysOf(t, "all")); diff != "" {
		t.Errorf("test runs (-want +got):\n%s", diff)
	}
	if names := journeysOf(t, "unit"); len(names) > 0 {
		t.Errorf("unit runs %v", names)
	}
}

// A journey is left out only if a test that runs tells its story.
func TestEveryRepeatedStoryHasATest(t *testing.T) {
	t.Chdir("../..")
	whole, short := journeysOf(t, "e2e"), journeysOf(t, "all")
	named := func(journeys map[string]int, name string) bool {
		for journey := range journeys {
			if strings.HasSuffix(journey, " "+name) {
				return true
			}
		}
		return false
	}
	for name, elsewhere := range repeated {
		if !named(whole, name) {
			t.Errorf("there is no journey %s", name)
		}
		folder, test, _ := strings.Cut(elsewhere, " ")
		if !slices.Contains(testsIn(t, folder), test) ||
			strings.Contains(folder, "/journeys/") && !named(short, test) {
			t.Errorf("%s is left out, and %s does not run", name, elsewhere)
		}
	}
}

// Each story of the product is told at least once on a fleet with Open Cluster Management
// whenever all tests run.
func TestEachOfTheProductsStoriesHasAJourney(t *testing.T) {
	t.Chdir("../..")
	short := journeysOf(t, "all")
	for story, journeys := range map[string][]string{
		"the addon is enabled by clusteradm": {"inventory TestAddonIsEnabledDisabledAndEnabledAgain"},
		"the chart installs it":              {"installation TestInstallByPlacement"},
		"profiles with live properties":      {"inventory TestClusterJoins", "inventory TestPropertyIsEditedAndDeleted"},
		"placements choose clusters": {
			"inventory TestPlacementNarrowsAndWidens", "inventory TestPlacementIsPublishedAsDecisions",
		},
		"a restart writes nothing":      {"inventory TestManagerRestartWritesNothing"},
		"kubectl explains what happens": {"inventory TestPluginExplainsWhatIsMissing"},
		"access providers": {
			"credentials TestProfileSaysHowToConnect", "credentials TestPersonsReachClustersThroughAKubeconfig",
		},
		"copied tokens, their rotation and withdrawal": {
			"credentials TestTokenGoesWhereItsAccountSays", "credentials TestConsumerSurvivesRotation",
			"credentials TestTokenIsWithdrawn",
		},
		"agents are rolled out by a Placement": {"installation TestAgentsAreUpgradedOneAfterTheOther"},
		"upgrade and rollback":                 {"credentials TestUpgradeAndRollback"},
		"hosted agents":                        {"hosted TestAClusterHostsTheAgentOfAnother"},
		"removal":                              {"installation TestUninstallLeavesNothing"},
		"the commands of the documentation":    {"credentials TestQuickStartWorksAsWritten"},
	} {
		for _, journey := range journeys {
			if short[journey] != 1 {
				t.Errorf("%s: %s runs %d times", story, journey, short[journey])
			}
		}
	}
}

func TestWhoSelectsTestsGetsThem(t *testing.T) {
	chosen, err := jobs("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range selected(chosen, "TestGuide") {
		for _, s := range job {
			if s.only != "TestGuide" || s.skip != "" {
				t.Errorf("who selects tests gets %+v", s)
			}
		}
	}
}
