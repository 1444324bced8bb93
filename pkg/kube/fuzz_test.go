package kube

import (
	"testing"
	"unicode/utf8"
)

// Whatever others name things, it is shown in characters that print, and not at length.
func FuzzShownText(f *testing.F) {
	f.Add("eu-central", 100)
	f.Add("\x1b[2J\xff\u202e\n", 10)
	f.Add("ü\U0001F600\u0301", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 3 || limit > 10_000 {
			return
		}
		shown := Shorten(text, limit)
		if len(shown) > limit || !IsPrintable(shown) || !utf8.ValidString(shown) {
			t.Errorf("%q in %d bytes: %q", text, limit, shown)
		}
		if again := Shorten(shown, limit); again != shown {
			t.Errorf("%q, shortened again: %q", shown, again)
		}
		// Each byte takes four characters at most.
		if quoted := Quote(text); len(quoted) > 4*maxQuotedBytes+2 || !IsPrintable(quoted) {
			t.Errorf("%q is quoted as %q", text, quoted)
		}
	})
}
