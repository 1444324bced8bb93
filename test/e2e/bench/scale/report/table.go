package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// row is all rounds of one scenario by one writer.
type row struct{ cells []string }

var header = []string{
	"scenario", "writer", "rounds", "seconds", "latency p50 / p99 ms", "writes: profiles, addons, works, Secrets",
	"CPU s: writer, API server, etcd, OCM, benchmark", "memory MiB: peak, settled", "outcome",
}

// rows returns the lines of a run's table, in the order in which scenarios first ran.
func (r *Run) rows() []row {
	type kind struct{ scenario, writer string }
	var order []kind
	rounds := map[kind][]Step{}
	for _, s := range r.Steps {
		k := kind{s.Scenario, s.Writer}
		if rounds[k] == nil {
			order = append(order, k)
		}
		rounds[k] = append(rounds[k], s)
	}
	rows := make([]row, 0, len(order))
	for _, k := range order {
		rows = append(rows, rowOf(k.scenario, k.writer, rounds[k]))
	}
	return rows
}

func rowOf(scenario, writer string, all []Step) row {
	good := slices.DeleteFunc(slices.Clone(all), func(s Step) bool { return s.Outcome != Done })
	outcome := Done
	for _, s := range all {
		if s.Outcome != Done {
			outcome = s.Outcome
		}
	}
	if note := all[0].Note; note != "" {
		outcome += "; " + note
	}
	if len(good) == 0 { // costs of an attempt are costs, too
		good = all
	}
	number := func(format string, get func(Step) float64) string { return fmt.Sprintf(format, median(good, get)) }
	writes := func(resource string) string {
		return number("%.0f", func(s Step) float64 { return float64(Writes(s, resource)) })
	}
	process := processOf(writer)
	mib := func(get func(Step) int64) string {
		return number("%.0f", func(s Step) float64 { return float64(get(s)) / (1 << 20) })
	}
	cells := []string{
		scenario, writer, fmt.Sprint(len(all)), number("%.2f", func(s Step) float64 { return s.Seconds }),
		latencyCell(good),
		strings.Join([]string{writes(profiles), writes(addons), writes(works), writes("secrets")}, ", "),
	}
	cpus := []string{
		"-", number("%.1f", cpu("apiserver")), number("%.1f", cpu("etcd")), number("%.1f", ocmCPU(process)),
		number("%.1f", cpu(Benchmark)),
	}
	memory := "-"
	if process != "" {
		cpus[0] = number("%.1f", cpu(process))
		memory = mib(func(s Step) int64 { return s.Peak[process] }) + ", " +
			mib(func(s Step) int64 { return s.Settled[process] })
	}
	return row{append(cells, strings.Join(cpus, ", "), memory, outcome)}
}

// processOf returns the process of a writer, or "" for the benchmark itself.
func processOf(writer string) string {
	return map[string]string{Addon: Manager, Gate: GateProcess, Syncer: "token-syncer"}[writer]
}

// ocmCPU returns the time of OCM's processes besides the writer's.
func ocmCPU(writer string) func(Step) float64 {
	return func(s Step) float64 {
		sum := 0.0
		for _, name := range []string{"webhooks", GateProcess, "placement", "addon-manager"} {
			if name != writer {
				sum += s.CPU[name]
			}
		}
		return sum
	}
}

func latencyCell(steps []Step) string {
	if len(steps) == 0 || steps[0].Latency == nil {
		return ""
	}
	l := steps[0].Latency
	cell := fmt.Sprintf("%.0f / %.0f", l.P50, l.P99)
	if rate := steps[0].Rate; rate > 0 {
		cell += fmt.Sprintf(" at %.0f/s", rate)
	}
	if l.Lost > 0 {
		cell += fmt.Sprintf(" (%d of %d not seen)", l.Lost, l.N+l.Lost)
	}
	if floor := steps[0].Floor; floor != nil {
		cell += fmt.Sprintf("; floor %.0f / %.0f", floor.P50, floor.P99)
	}
	return cell
}

// ratios returns the results that were measured in pairs.
func (r *Run) ratios() []row {
	var rows []row
	for _, scenario := range []string{Bind, EditAll, Unbind, FirstCopies, Rotation} {
		if ratio := r.ratio(scenario, Addon, Raw); ratio.Pairs > 0 {
			rows = append(rows, row{[]string{scenario, Addon + " / " + Raw, ratio.String()}})
		}
		for _, other := range []string{Gate, Syncer} {
			ours, theirs := seconds(r.of(scenario, Addon)), seconds(r.of(scenario, other))
			if len(ours) > 0 && len(theirs) > 0 {
				rows = append(rows, row{[]string{
					scenario, other + " / " + Addon, fmt.Sprintf("%.1f", stats.Median(theirs)/stats.Median(ours)),
				}})
			}
		}
	}
	return rows
}

// Markdown writes the runs as tables, ready for a document.
func Markdown(out io.Writer, runs []Run) {
	for i := range runs {
		run := &runs[i]
		fmt.Fprintf(out, "%s, commit %s, %d clusters with %d claims each, %.0f minutes.\n%s.\n\n",
			run.Began.UTC().Format("2006-01-02"), run.Commit, run.Clusters, run.Claims, run.Seconds/60, run.Machine)
		writeTable(out, header, run.rows())
		fmt.Fprintln(out)
		if pairs := run.ratios(); len(pairs) > 0 {
			writeTable(out, []string{"scenario", "compared", "times"}, pairs)
			fmt.Fprintln(out)
		}
	}
	var rows []row
	for _, r := range Reaches(runs) {
		rows = append(rows, row{[]string{r.What, r.Goal, r.Got, r.Verdict()}})
	}
	writeTable(out, []string{"what", "goal", "measured", ""}, rows)
}

// String describes the machine in a sentence.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores for everything, %d GiB, Linux %s, %s; load before the run %.1f",
		m.CPU, m.Cores, m.Memory>>30, m.Kernel, m.Go, m.Load)
}

// writeTable writes a Markdown table whose columns line up.
func writeTable(out io.Writer, header []string, rows []row) {
	widths := make([]int, len(header))
	all := append([]row{{header}}, rows...)
	for _, r := range all {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], len(cell))
		}
	}
	line := func(cells []string, pad string) {
		padded := make([]string, 0, len(cells))
		for i, cell := range cells {
			padded = append(padded, cell+strings.Repeat(pad, widths[i]-len(cell)))
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(padded, " | "))
	}
	line(header, " ")
	line(make([]string, len(header)), "-")
	for _, r := range rows {
		line(r.cells, " ")
	}
}
