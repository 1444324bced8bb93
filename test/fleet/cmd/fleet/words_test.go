package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitWords(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want []string
		bad  bool
	}{
		"nothing": {line: "  ", want: nil},
		"flags":   {line: "--set a=b  --set c=d", want: []string{"--set", "a=b", "--set", "c=d"}},
		"quotes keep spaces": {
			line: `--set 'a=b c' --set d="e f"`,
			want: []string{"--set", "a=b c", "--set", "d=e f"},
		},
		"an empty word in quotes":      {line: `--set-string a= ''`, want: []string{"--set-string", "a=", ""}},
		"a backslash":                  {line: `--set a=b\,c --set 'd\e'`, want: []string{"--set", "a=b,c", "--set", `d\e`}},
		"a quote that is never closed": {line: `--set 'a`, bad: true},
		"a backslash at the end":       {line: `a\`, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := splitWords(test.line)
			if (err != nil) != test.bad {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
