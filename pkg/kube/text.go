package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shorten makes text safe to show. It escapes characters that do not print, such as line
// ends and terminal control characters. If the result has more than limit bytes, it is cut
// between two characters so that it fits with "..." appended.
func Shorten(text string, limit int) string {
	const ellipsis = "..."
	if len(text) <= limit && IsPrintable(text) {
		return text
	}
	var shown strings.Builder
	end := 0 // where to cut
	for rest := text; rest != ""; {
		r, width := utf8.DecodeRuneInString(rest)
		next := rest[:width]
		switch {
		case r == utf8.RuneError && width == 1:
			next = fmt.Sprintf(`\x%02x`, rest[0])
		case !unicode.IsPrint(r):
			next = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		rest = rest[width:]
		if shown.Len() <= limit-len(ellipsis) {
			end = shown.Len()
		}
		if shown.Len()+len(next) > limit {
			return shown.String()[:end] + ellipsis
		}
		shown.WriteString(next)
	}
	return shown.String()
}

// IsPrintable reports whether every character of a text has a visible form or is a
// space.
func IsPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// maxQuotedBytes is how much of a name Quote shows.
const maxQuotedBytes = 80

// Quote makes a name that another user chose safe and short enough to show.
func Quote(name string) string {
	if len(name) > maxQuotedBytes {
		end := maxQuotedBytes - len("...")
		for end > 0 && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end] + "..."
	}
	return strconv.QuoteToASCII(name)
}

// ListNames joins at most limit names with commas and appends how many more there are.
func ListNames(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// SortedNames returns the names sorted and without duplicates. It leaves the given slice
// unchanged.
func SortedNames(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
