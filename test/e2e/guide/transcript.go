package guide

import (
	"fmt"
	"regexp"
	"strings"
)

// Exchange is a command that a page shows after a dollar sign, and what it prints there.
type Exchange struct {
	Command string
	Output  string
}

var prompt = regexp.MustCompile(`^( {4,})\$ (.*)$`)

// Transcript returns the exchanges of a page, in order. A command goes on in the next line
// after a backslash; its output ends with the block, an empty line or the next command.
func Transcript(content string) []Exchange {
	var all []Exchange
	indent, goesOn, open := "", false, false
	for _, line := range strings.Split(content, "\n") {
		if found := prompt.FindStringSubmatch(line); found != nil && !goesOn {
			indent, open = found[1], true
			all = append(all, Exchange{})
			line = indent + found[2]
			goesOn = true
		}
		text, inside := strings.CutPrefix(line, indent)
		if !open || !inside || strings.TrimSpace(text) == "" {
			open, goesOn = false, false
			continue
		}
		last := &all[len(all)-1]
		if !goesOn {
			last.Output += text + "\n"
			continue
		}
		text, goesOn = strings.CutSuffix(strings.TrimSpace(text), "\\")
		last.Command = strings.TrimSpace(last.Command + " " + strings.TrimSpace(text))
	}
	return all
}

// What differs from one run to the next.
var changing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`), "TIME"},
	{regexp.MustCompile(`\b\d+[smhd]\b`), "AGE"},
	{regexp.MustCompile(`(?m)^LAST DEPLOYED: .*$`), "LAST DEPLOYED: TIME"},
	{regexp.MustCompile(`\bcluster-inventory-[0-9a-f]{12}\b`), "cluster-inventory-HASH"},
}

func constant(text string) string {
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.as)
	}
	return strings.TrimSpace(text)
}

// Shows is an error unless a page shows what a command has printed, apart from times, hashes
// and the widths of columns. Three dots stand for the rest of a line, or, in a line of their
// own, for any lines. A page that shows nothing says nothing.
func Shows(page, printed string) error {
	page, printed = constant(page), constant(printed)
	if page == "" {
		return nil
	}
	var pattern strings.Builder
	for _, line := range strings.Split(page, "\n") {
		if line == "..." {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*") + "\n")
	}
	if !regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(printed + "\n") {
		return fmt.Errorf("the page shows\n%s\nand the command has printed\n%s", page, printed)
	}
	return nil
}
