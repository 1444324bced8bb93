package conformance

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is the result of all checks.
type Report struct {
	ClusterManager string   `json:"clusterManager"`
	Profiles       int      `json:"profiles"`
	Results        []Result `json:"results"`
}

// Result is the result of one check.
type Result struct {
	Check    string `json:"check"`
	Required bool   `json:"required"`

	// Problems are empty if the check passed.
	Problems []string `json:"problems,omitempty"`
}

// maxPrinted is how many problems of a check Print shows; the report itself has all.
const maxPrinted = 5

// Conforms reports whether every required check passed.
func (r Report) Conforms() bool {
	for _, result := range r.Results {
		if result.Required && len(result.Problems) > 0 {
			return false
		}
	}
	return true
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) {
	fmt.Fprintf(out, "%d ClusterProfiles of cluster manager %s\n", r.Profiles, r.ClusterManager)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, result := range r.Results {
		level, verdict := "optional", "pass"
		if result.Required {
			level = "required"
		}
		if len(result.Problems) > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", verdict, level, result.Check)
		for i, problem := range result.Problems {
			if i == maxPrinted {
				fmt.Fprintf(table, "\t\t  and %d more\n", len(result.Problems)-i)
				break
			}
			fmt.Fprintf(table, "\t\t  %s\n", problem)
		}
	}
	_ = table.Flush()
	if r.Conforms() {
		fmt.Fprintln(out, "It conforms: every required check passed.")
	} else {
		fmt.Fprintln(out, "It does not conform: a required check failed.")
	}
}
