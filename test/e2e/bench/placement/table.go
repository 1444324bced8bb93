package placement

import (
	"fmt"
	"io"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// Result is what one run measured.
type Result struct {
	Clusters int
	Actions  []Action
	Removals []Removal
}

// Lost is how many clusters that stayed chosen lost something, and how long at most.
type Lost struct {
	Clusters int
	Longest  time.Duration
}

func (l Lost) String() string {
	if l.Clusters == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f s)", l.Clusters, l.Longest.Seconds())
}

// Action is what an admin did, and what it took from clusters that were chosen before and
// after.
type Action struct {
	What string
	Kept int
	// Gap is from slices of decisions, the others from their cluster's namespace and the
	// consumer's.
	Gap, Addons, Profiles, References, Copies Lost
	// Cleanups are how many clean-up Jobs were sent to these clusters.
	Cleanups int
	// Settled is how long after the action's begin the last thing changed.
	Settled time.Duration
	// Note says what else was seen.
	Note string
}

// Removal is how long the parts of a removed cluster's inventory stayed.
type Removal struct {
	What                         string
	Profiles, References, Copies stats.Sample
}

// Print writes the tables, in Markdown.
func (r *Result) Print(out io.Writer) {
	if len(r.Actions) > 0 {
		fmt.Fprintf(out, "\nOf %d clusters, those that were chosen before and after the action and lost something "+
			"(for how long at most):\n\n", r.Clusters)
		fmt.Fprintln(out, "| action | in no slice | addon | profile | reference | copy | clean-up Jobs | settled | |")
		fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---|")
	}
	for _, a := range r.Actions {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %d | %.1f s | %s |\n", a.What, a.Gap, a.Addons, a.Profiles,
			a.References, a.Copies, a.Cleanups, a.Settled.Seconds(), a.Note)
	}
	if len(r.Removals) > 0 {
		fmt.Fprintf(out, "\nOf %d clusters, how long after a removal the removed one's things were gone "+
			"(median and longest):\n\n", r.Clusters)
		fmt.Fprintln(out, "| removal | rounds | profile | reference | copy |")
		fmt.Fprintln(out, "|---|---:|---:|---:|---:|")
	}
	for _, removal := range r.Removals {
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s |\n", removal.What, len(removal.Profiles),
			both(removal.Profiles), both(removal.References), both(removal.Copies))
	}
}

func both(s stats.Sample) string {
	if len(s) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f s, %.2f s", s.Quantile(0.5).Seconds(), s.Quantile(1).Seconds())
}
