package report

import (
	"fmt"
	"slices"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// Reach is a goal and its measured value.
type Reach struct {
	What, Goal, Got string
	// Measured is false if the run did not measure it.
	Measured, Reached bool
	// TooSmall is true if the goal is for more clusters than were measured.
	TooSmall bool
}

// goalClusters is the size of the fleet that most goals are for: in a smaller one, the cost
// of every start and every burst hides the rest.
const goalClusters = 1000

// Verdict returns the verdict on the goal for a table.
func (r Reach) Verdict() string {
	switch {
	case !r.Measured:
		return "not measured"
	case r.TooSmall:
		return fmt.Sprintf("needs %d clusters", goalClusters)
	case r.Reached:
		return "reached"
	default:
		return "not reached"
	}
}

// The processes that goals are about.
const (
	// Manager is the process of this addon, as the meter names it.
	Manager = "manager"
	// GateProcess is the process that contains OCM's gate.
	GateProcess = "registration"
	// Benchmark is the benchmark's own process: editor, observer and raw writer.
	Benchmark = "benchmark"
)

// Names of resources in requests.
const (
	profiles = "clusterprofiles"
	addons   = "managedclusteraddons"
	works    = "manifestworks"
)

// Reaches checks the goals against the runs, smallest first: goals for one fleet against the smallest
// run that is large enough. CPU goals for a thousand clusters are scaled to that run's
// number.
func Reaches(runs []Run) []Reach {
	if len(runs) == 0 {
		return nil
	}
	chosen := &runs[len(runs)-1]
	for i := range slices.Backward(runs) {
		if runs[i].Clusters >= goalClusters {
			chosen = &runs[i]
		}
	}
	sized := []Reach{
		bindBesideRaw(chosen), bindBesideGate(chosen), enableCPU(chosen), restartCPU(chosen), editCPU(chosen),
		revocation(chosen), memory(runs), growth(runs),
	}
	for i := range sized {
		sized[i].TooSmall = chosen.Clusters < goalClusters
	}
	return append([]Reach{bindWrites(chosen), restartWrites(chosen), editLatency(chosen)}, sized...)
}

func bindBesideRaw(run *Run) Reach {
	ratio := run.ratio(Bind, Addon, Raw)
	return Reach{
		What: fmt.Sprintf("bind %d: time beside a raw writer", run.Clusters), Goal: "<= 1.25 x",
		Got: ratio.String(), Measured: ratio.Pairs > 0, Reached: ratio.Median <= 1.25,
	}
}

func bindBesideGate(run *Run) Reach {
	reach := Reach{What: fmt.Sprintf("bind %d: faster than OCM's gate", run.Clusters), Goal: ">= 4 x", Got: "-"}
	ours, theirs := stats.Median(seconds(run.of(Bind, Addon))), stats.Median(seconds(run.of(Bind, Gate)))
	if ours > 0 && theirs > 0 {
		reach.Measured, reach.Reached = true, theirs/ours >= 4
		reach.Got = fmt.Sprintf("%.1f x (%.1f s, %.1f s)", theirs/ours, ours, theirs)
	}
	return reach
}

func bindWrites(run *Run) Reach {
	reach := Reach{What: "bind: writes per profile, and to addons", Goal: "2 and 0", Got: "-"}
	steps := run.of(Bind, Addon)
	if len(steps) == 0 {
		return reach
	}
	perProfile := median(steps, func(s Step) float64 { return float64(Writes(s, profiles)) / float64(s.Objects) })
	toAddons := median(steps, func(s Step) float64 { return float64(Writes(s, addons)) })
	reach.Measured, reach.Reached = true, perProfile == 2 && toAddons == 0
	reach.Got = fmt.Sprintf("%.2f and %.0f", perProfile, toAddons)
	return reach
}

func enableCPU(run *Run) Reach {
	return managerCPU(run, Enable, fmt.Sprintf("enable %d", run.Clusters), 15)
}

func restartWrites(run *Run) Reach {
	reach := Reach{What: "restart: writes to profiles, addons and works", Goal: "0", Got: "-"}
	if steps := run.of(Restart, Addon); len(steps) > 0 {
		writes := median(steps, func(s Step) float64 {
			return float64(Writes(s, profiles) + Writes(s, addons) + Writes(s, works))
		})
		reach.Measured, reach.Reached, reach.Got = true, writes == 0, fmt.Sprintf("%.0f", writes)
	}
	return reach
}

func restartCPU(run *Run) Reach {
	return managerCPU(run, Restart, fmt.Sprintf("restart, %d", run.Clusters), 5)
}

// managerCPU checks how many CPU seconds the manager uses in a scenario; atGoal is the limit for
// goalClusters clusters.
func managerCPU(run *Run, scenario, what string, atGoal float64) Reach {
	goal := atGoal * float64(run.Clusters) / goalClusters
	reach := Reach{What: what + ": CPU of the manager", Goal: fmt.Sprintf("<= %.1f s", goal), Got: "-"}
	if steps := run.of(scenario, Addon); len(steps) > 0 {
		used := median(steps, cpu(Manager))
		reach.Measured, reach.Reached, reach.Got = true, used <= goal, fmt.Sprintf("%.1f s", used)
	}
	return reach
}

func editLatency(run *Run) Reach {
	reach := Reach{What: "edit -> visible under 100 edits/s: p99", Goal: "< 1 s", Got: "-"}
	if steps := run.of(EditStream, Addon); len(steps) > 0 {
		p99 := median(steps, func(s Step) float64 { return s.Latency.P99 })
		lost := steps[0].Latency.Lost
		reach.Measured, reach.Reached = true, p99 < 1000 && lost == 0
		reach.Got = fmt.Sprintf("%.0f ms at %.0f edits/s", p99, steps[0].Rate)
		if lost > 0 {
			reach.Got += fmt.Sprintf(", %d not seen", lost)
		}
		if floor := steps[0].Floor; floor != nil {
			reach.Got += fmt.Sprintf("; a watch of the edits themselves: %.0f ms", floor.P99)
		}
	}
	return reach
}

func editCPU(run *Run) Reach {
	reach := Reach{What: "edit -> visible under 100 edits/s: CPU of the manager per edit", Goal: "<= 2 ms", Got: "-"}
	if steps := run.of(EditStream, Addon); len(steps) > 0 {
		each := median(steps, func(s Step) float64 { return s.CPU[Manager] * 1000 / float64(s.Objects) })
		reach.Measured, reach.Reached, reach.Got = true, each <= 2, fmt.Sprintf("%.2f ms", each)
	}
	return reach
}

func revocation(run *Run) Reach {
	reach := Reach{What: "revocation behind queued first writes: p99", Goal: "<= 2 s", Got: "-"}
	if steps := run.of(Revocation, Addon); len(steps) > 0 {
		p99 := median(steps, func(s Step) float64 { return s.Latency.P99 })
		reach.Measured, reach.Reached = true, p99 <= 2000
		reach.Got = fmt.Sprintf("%.0f ms (%s)", p99, steps[0].Note)
	}
	return reach
}

// MemoryFit returns the manager's settled memory in MiB by clusters, each in two
// namespaces.
func MemoryFit(runs []Run) (clusters, mib []float64, fit stats.Line, err error) {
	for i := range runs {
		if steps := runs[i].of(Second, Addon); len(steps) > 0 {
			clusters = append(clusters, float64(runs[i].Clusters))
			mib = append(mib, median(steps, func(s Step) float64 { return float64(s.Settled[Manager]) })/(1<<20))
		}
	}
	fit, err = stats.FitLine(clusters, mib)
	return clusters, mib, fit, err
}

func memory(runs []Run) Reach {
	reach := Reach{What: "memory at 10,000 clusters in 2 namespaces, by the fit", Goal: "<= 300 MiB", Got: "-"}
	if clusters, _, fit, err := MemoryFit(runs); err == nil {
		at := fit.At(10000)
		reach.Measured, reach.Reached = true, at <= 300
		reach.Got = fmt.Sprintf("%.0f MiB = %.0f MiB + %.1f KiB per cluster, from %d runs of %.0f to %.0f",
			at, fit.Intercept, fit.Slope*1024, len(clusters), clusters[0], clusters[len(clusters)-1])
	}
	return reach
}

// Growth returns the times of a scenario by clusters.
func Growth(runs []Run, scenario, writer string) (clusters, times []float64) {
	for i := range runs {
		if steps := runs[i].of(scenario, writer); len(steps) > 0 {
			clusters = append(clusters, float64(runs[i].Clusters))
			times = append(times, stats.Median(seconds(steps)))
		}
	}
	return clusters, times
}

func growth(runs []Run) Reach {
	reach := Reach{What: "time to bind as the fleet grows: exponent", Goal: "<= 1.05", Got: "-"}
	clusters, times := Growth(runs, Bind, Addon)
	if k, err := stats.Exponent(clusters, times); err == nil {
		reach.Measured, reach.Reached = true, k <= 1.05
		reach.Got = fmt.Sprintf("%.2f, from %.0f to %.0f clusters", k, clusters[0], clusters[len(clusters)-1])
		if rawK, err := stats.Exponent(Growth(runs, Bind, Raw)); err == nil {
			reach.Got += fmt.Sprintf("; the raw writer's: %.2f", rawK)
		}
	}
	return reach
}

func cpu(process string) func(Step) float64 {
	return func(s Step) float64 { return s.CPU[process] }
}

var writing = map[string]bool{"POST": true, "PUT": true, "PATCH": true, "APPLY": true, "DELETE": true}

// Writes returns how many writes of a resource and its subresources a step took, including
// all clients' and refused ones.
func Writes(s Step, resource string) int {
	sum := 0
	for request, count := range s.Requests {
		words := strings.Fields(request)
		of, _, _ := strings.Cut(words[1], "/")
		if writing[words[0]] && of == resource {
			sum += count
		}
	}
	return sum
}
