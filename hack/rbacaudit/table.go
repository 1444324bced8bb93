package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The table is between these lines of docs/security.md.
const (
	tableBegin = "<!-- Begin of the table of rights: make generate writes it. -->\n"
	tableEnd   = "<!-- End of the table of rights. -->\n"
)

// tableOf is the table of docs/security.md: what is granted, and why that is more than
// audit logs show.
func tableOf(grants []grant, known exceptions) string {
	var table strings.Builder
	table.WriteString("| who | where | what | verbs | beyond what the audit logs show |\n|---|---|---|---|---|\n")
	who, where := "", ""
	for _, g := range sorted(grants) {
		cells := []string{"", "", described(g), quoted(g.verbs), strings.Join(reasons(g, known), "; ")}
		if g.who != who {
			cells[0], where = g.who, ""
		}
		if g.where.title != where {
			cells[1] = g.where.title
		}
		who, where = g.who, g.where.title
		for _, cell := range cells {
			table.WriteString(strings.TrimRight("| "+cell, " ") + " ")
		}
		table.WriteString("|\n")
	}
	return table.String()
}

// described is what a grant is for: the resource with its group, and names.
func described(g grant) string {
	resource := "`" + g.resource + "`"
	if g.group != "" {
		resource += " (" + g.group + ")"
	}
	if len(g.names) > 0 {
		resource += ": " + strings.ReplaceAll(quoted(g.names), "`open-cluster-management:cluster-inventory:", "`…:")
	}
	return resource
}

func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// reasons are those of the exceptions for a grant, each with its verbs.
func reasons(g grant, known exceptions) []string {
	var all []string
	for _, e := range known.all() {
		isFor := func(verb string) bool { return e.isFor(g, verb) }
		verbs := slices.DeleteFunc(slices.Clone(g.verbs), func(verb string) bool { return !isFor(verb) })
		if len(verbs) == 0 {
			continue
		}
		reason := quoted(verbs) + ": " + e.reason
		if e.test != "" {
			reason += " (`" + e.test + "`)"
		}
		all = append(all, reason)
	}
	return all
}

// withTable returns a page with the table in its place.
func withTable(page, table string) (string, error) {
	before, rest, found := strings.Cut(page, tableBegin)
	if !found {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(tableBegin))
	}
	_, after, found := strings.Cut(rest, tableEnd)
	if !found {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(tableEnd))
	}
	return before + tableBegin + "\n" + table + "\n" + tableEnd + after, nil
}

// report writes how often each right was used.
func report(out io.Writer, rows []row, used *usage, known exceptions) error {
	var text strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&text, "%s\n", r)
		for _, verb := range r.verbs {
			count := fmt.Sprintf("%d requests", r.requests[verb])
			if r.requests[verb] == 0 {
				count = "UNUSED"
			}
			fmt.Fprintf(&text, "    %-6s %s\n", verb, count)
		}
		for _, reason := range reasons(r.grant, known) {
			fmt.Fprintf(&text, "    %s\n", reason)
		}
	}
	for _, who := range slices.Sorted(maps.Keys(used.others)) {
		fmt.Fprintf(&text, "not counted: %s: %d requests\n", who, used.others[who])
	}
	_, err := io.WriteString(out, text.String())
	return err
}
