package report

import (
	"bytes"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// aRun is one in which everything went as it should: binding takes 10 ms per cluster, the
// raw writer half of that, the gate five times that.
func aRun(clusters int) Run {
	n := float64(clusters)
	run := Run{Clusters: clusters, Claims: 10, Commit: "abc", Began: time.Unix(0, 0)}
	add := func(scenario, writer string, round int, seconds float64, more func(*Step)) {
		s := Step{Scenario: scenario, Writer: writer, Round: round, Objects: clusters, Outcome: Done, Seconds: seconds}
		if more != nil {
			more(&s)
		}
		run.Steps = append(run.Steps, s)
	}
	add(Enable, Addon, 1, 1, func(s *Step) { s.CPU = map[string]float64{Manager: n * 0.01} })
	for round := 1; round <= 3; round++ {
		add(Bind, Raw, round, n*0.005, nil)
		add(Bind, Addon, round, n*0.01, func(s *Step) {
			s.CPU = map[string]float64{Manager: 1, "apiserver": 2}
			s.Requests = map[string]int{
				"POST clusterprofiles": clusters, "PATCH clusterprofiles/status": clusters, "GET clusterprofiles": 7,
				"PATCH managedclusteraddons/status 409": 2,
			}
		})
	}
	add(Bind, Gate, 1, n*0.05, nil)
	add(EditStream, Addon, 1, 60, func(s *Step) {
		s.Objects, s.Rate = 6000, 99
		s.CPU = map[string]float64{Manager: 18}
		s.Latency = LatencyOf(stats.Sample{10 * time.Millisecond, 990 * time.Millisecond}, 3)
		s.Floor = LatencyOf(stats.Sample{5 * time.Millisecond, 800 * time.Millisecond}, 0)
	})
	add(Restart, Addon, 1, 2, func(s *Step) {
		s.CPU = map[string]float64{Manager: n * 0.006}
		s.Requests = map[string]int{"PUT leases": 3}
	})
	add(Second, Addon, 1, 2, func(s *Step) {
		s.Settled = map[string]int64{Manager: (20 << 20) + int64(clusters)*20<<10}
		s.Peak = map[string]int64{Manager: 90 << 20}
	})
	add(Revocation, Addon, 1, 2, func(s *Step) {
		s.Latency, s.Note = LatencyOf(stats.Sample{2500 * time.Millisecond}, 0), "1 revocation"
	})
	add(Swap, Gate, 1, 30, func(s *Step) { s.Outcome = "3 of 5: context deadline exceeded" })
	return run
}

func verdicts(runs ...Run) map[string]string {
	got := map[string]string{}
	for _, r := range Reaches(runs) {
		got[r.What] = r.Got + ": " + r.Verdict()
	}
	return got
}

func TestGoalsAreCheckedAgainstWhatWasMeasured(t *testing.T) {
	want := map[string]string{
		"bind 1000: time beside a raw writer":                            "2.00 (2.00-2.00, 3 pairs): not reached",
		"bind 1000: faster than OCM's gate":                              "5.0 x (10.0 s, 50.0 s): reached",
		"bind: writes per profile, and to addons":                        "2.00 and 2: not reached",
		"enable 1000: CPU of the manager":                                "10.0 s: reached",
		"restart: writes to profiles, addons and works":                  "0: reached",
		"restart, 1000: CPU of the manager":                              "6.0 s: not reached",
		"edit -> visible under 100 edits/s: p99":                         "990 ms at 99 edits/s, 3 not seen; a watch of the edits themselves: 800 ms: not reached",
		"edit -> visible under 100 edits/s: CPU of the manager per edit": "3.00 ms: not reached",
		"revocation behind queued first writes: p99":                     "2500 ms (1 revocation): not reached",
		"memory at 10,000 clusters in 2 namespaces, by the fit":          "215 MiB = 20 MiB + 20.0 KiB per cluster, from 3 runs of 500 to 2000: reached",
		"time to bind as the fleet grows: exponent":                      "1.00, from 500 to 2000 clusters; the raw writer's: 1.00: reached",
	}
	if diff := cmp.Diff(want, verdicts(aRun(500), aRun(1000), aRun(2000))); diff != "" {
		t.Error(diff)
	}
}

func TestGoalsForAThousandNeedAThousand(t *testing.T) {
	got := verdicts(aRun(100), aRun(200))
	for _, what := range []string{"bind 200: faster than OCM's gate", "restart, 200: CPU of the manager"} {
		if !strings.HasSuffix(got[what], "needs 1000 clusters") {
			t.Errorf("%s: %q", what, got[what])
		}
	}
	if what := "restart: writes to profiles, addons and works"; got[what] != "0: reached" {
		t.Errorf("%s: %q: counts are checked in a fleet of any size", what, got[what])
	}
}

func TestStepsThatFailedMeasureNothing(t *testing.T) {
	run := aRun(1000)
	for i := range run.Steps {
		run.Steps[i].Outcome = "it ran into its bound"
	}
	for what, verdict := range verdicts(run) {
		if verdict != "-: not measured" {
			t.Errorf("%s: %q", what, verdict)
		}
	}
	if Reaches(nil) != nil {
		t.Error("no runs have reached something")
	}
}

func TestPairsAreOfOneRound(t *testing.T) {
	run := Run{Steps: []Step{
		{Scenario: Bind, Writer: Addon, Round: 1, Outcome: Done, Seconds: 2},
		{Scenario: Bind, Writer: Addon, Round: 2, Outcome: Done, Seconds: 9},
		{Scenario: Bind, Writer: Raw, Round: 2, Outcome: Done, Seconds: 3},
		{Scenario: Bind, Writer: Raw, Round: 1, Outcome: "failed", Seconds: 100},
	}}
	if got := run.ratio(Bind, Addon, Raw); got.Pairs != 1 || math.Abs(got.Median-3) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}

func TestWritesAreThoseOfOneResource(t *testing.T) {
	step := Step{Requests: map[string]int{
		"POST clusterprofiles": 1, "PATCH clusterprofiles/status": 2, "PATCH clusterprofiles/status 409": 4,
		"GET clusterprofiles": 8, "LIST clusterprofiles": 16, "PUT leases": 32,
	}}
	if got := Writes(step, "clusterprofiles"); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

func TestRunsAreReadTheSmallestFirst(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, clusters := range map[string]int{"a": 2000, "b": 1000} {
		run := aRun(clusters)
		file := filepath.Join(dir, name)
		if err := run.Write(file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	runs, err := Read(files...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aRun(1000).Steps, runs[0].Steps); diff != "" || runs[1].Clusters != 2000 {
		t.Errorf("then %d clusters; first (-want +got):\n%s", runs[1].Clusters, diff)
	}
	if _, err := Read(); err == nil {
		t.Error("nothing was read without an error")
	}
	if _, err := Read(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file was read")
	}
}

func TestTablesShowWhatFailedToo(t *testing.T) {
	var out bytes.Buffer
	Markdown(&out, []Run{aRun(1000)})
	for _, want := range []string{
		"commit abc, 1000 clusters with 10 claims each",
		"3 of 5: context deadline exceeded",
		"10 / 990 at 99/s (3 of 5 not seen)",
		"2.00 (2.00-2.00, 3 pairs)",
		"90, 40",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

func TestPlotsAreDrawnOfWhatWasMeasured(t *testing.T) {
	tests := map[string]struct {
		runs []Run
		want []string
	}{
		"two sizes show growth":     {[]Run{aRun(1000), aRun(2000)}, []string{"cpu", "edits", "growth", "memory", "speed"}},
		"one size shows none":       {[]Run{aRun(1000)}, []string{"cpu", "edits", "speed"}},
		"a run that failed at once": {[]Run{{Clusters: 10}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Plots(dir, test.runs); err != nil {
				t.Fatal(err)
			}
			var got []string
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				got = append(got, strings.TrimSuffix(entry.Name(), ".svg"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The pictures in docs/performance are those of the measurements beside them, and no text leaves
// its picture, even in a font that is a tenth wider.
func TestTextsStayInThePictures(t *testing.T) {
	const docs = "../../../../../docs/performance"
	var paths []string
	for _, name := range []string{"scale-1000", "scale-1000-later", "scale-3000", "scale-10000"} {
		paths = append(paths, filepath.Join(docs, name+".json"))
	}
	runs, err := Read(paths...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Plots(dir, runs); err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile(`(?s)<text x="([-0-9.]+)" y="([-0-9.]+)"[^>]*font-weight:(\w+);[^>]*font-size:([0-9.]+)px">([^<]*)</text>`)
	for _, name := range []string{"cpu", "edits", "growth", "memory", "speed"} {
		drawn, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if published, err := os.ReadFile(filepath.Join(docs, name+".svg")); err != nil || !bytes.Equal(drawn, published) {
			t.Errorf("docs/performance/%s.svg is not what the bench draws (%v): see docs/performance.md", name, err)
		}
		found := texts.FindAllSubmatch(drawn, -1)
		if len(found) < 5 || len(found) != bytes.Count(drawn, []byte("<text ")) {
			t.Errorf("%s: read %d texts", name, len(found))
		}
		for _, match := range found {
			number := func(i int) float64 {
				value, err := strconv.ParseFloat(string(match[i]), 64)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
			face := font.From(typeface, vg.Points(number(4)))
			if string(match[3]) == "bold" {
				face.Weight = xfont.WeightBold
			}
			words := html.UnescapeString(string(match[5]))
			known := font.DefaultCache.Lookup(face, face.Size)
			wide := 1.1 * known.Width(words).Points()
			// Texts are written in a group that is upside down.
			x, y := number(1), -number(2)
			if x < 0 || x+wide > width.Points() || y < 2 || y+number(4) > height.Points() {
				t.Errorf("%s: %q, from %.0f to %.0f and %.0f above the ground, leaves the picture", name, words, x, x+wide, y)
			}
		}
	}
}
