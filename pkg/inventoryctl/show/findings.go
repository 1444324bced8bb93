package show

import (
	"fmt"
	"io"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Palette colours states if it is true.
type Palette bool

// Colours of a terminal (ECMA-48).
const (
	green  = "32"
	red    = "31"
	yellow = "33"
)

func (p Palette) paint(state decide.State, text string) string {
	if !p {
		return text
	}
	color := yellow
	switch state {
	case decide.Done, decide.OK:
		color = green
	case decide.Missing, decide.Problem:
		color = red
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// maxFindingBytes is how much of a finding's text is shown. A condition's message has up to
// 1024 bytes.
const maxFindingBytes = 1400

// Explanation prints the steps, and the command that fixes the first wrong one.
func Explanation(out io.Writer, e decide.Explanation, p Palette) {
	switch {
	case e.Property != "":
		fmt.Fprintf(out, "Property %s of cluster %s:\n\n", kube.Shorten(e.Property, maxCellBytes), e.Cluster)
	default:
		fmt.Fprintf(out, "Cluster %s in namespace %s:\n\n", e.Cluster, e.Namespace)
	}
	findings(out, e.Steps, p)
	events(out, e)
	if wrong := decide.FirstWrong(e.Steps); wrong != nil && wrong.Fix != "" {
		fmt.Fprintf(out, "\nNext step for %s:\n\n  %s\n", wrong.Name, kube.Shorten(wrong.Fix, maxFindingBytes))
	}
}

// events prints what the manager has reported to the consumers of a namespace.
func events(out io.Writer, e decide.Explanation) {
	if len(e.Events) == 0 {
		return
	}
	fmt.Fprintf(out, "\nEvents in namespace %s, the newest of each reason:\n\n", e.Namespace)
	ages, reasons := 0, 0
	for _, event := range e.Events {
		ages, reasons = max(ages, len(event.Age)), max(reasons, len(kube.Shorten(event.Reason, maxCellBytes)))
	}
	for _, event := range e.Events {
		fmt.Fprintf(out, "%-*s   %-7s   %-*s   %s: %s\n", ages, event.Age, event.Type,
			reasons, kube.Shorten(event.Reason, maxCellBytes), kube.Shorten(event.Object, maxCellBytes),
			kube.Shorten(event.Text, maxFindingBytes))
	}
}

// Checks prints checks, each with what to do.
func Checks(out io.Writer, checks []decide.Finding, p Palette) {
	lines := make([]decide.Finding, 0, len(checks))
	for _, check := range checks {
		if check.Fix != "" {
			check.Text += ": " + check.Fix
		}
		lines = append(lines, check)
	}
	findings(out, lines, p)
}

func findings(out io.Writer, list []decide.Finding, p Palette) {
	states, names := 0, 0
	for _, finding := range list {
		states, names = max(states, len(finding.State)), max(names, len(finding.Name))
	}
	for _, finding := range list {
		pad := strings.Repeat(" ", states-len(finding.State))
		fmt.Fprintf(out, "%s%s   %-*s   %s\n", p.paint(finding.State, string(finding.State)), pad, names, finding.Name,
			kube.Shorten(finding.Text, maxFindingBytes))
	}
}
