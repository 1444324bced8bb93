package guide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTranscript(t *testing.T) {
	const text = `# Title

1. Do this.

       $ make it
       done
       ...

   and that, as in "    $ nothing":

       $ kubectl get x \
           -o y
       NAME
         a

    kubectl without a prompt

    $ first
    $ second
    2
after
`
	want := []Exchange{
		{Command: "make it", Output: "done\n...\n"},
		{Command: "kubectl get x -o y", Output: "NAME\n  a\n"},
		{Command: "first"},
		{Command: "second", Output: "2\n"},
	}
	if diff := cmp.Diff(want, Transcript(text)); diff != "" {
		t.Errorf("exchanges (-want +got):\n%s", diff)
	}
}

func TestShows(t *testing.T) {
	for name, test := range map[string]struct {
		page, printed string
		want          bool
	}{
		"the same":                         {"a\nb\n", "a\nb\n", true},
		"other widths of columns":          {"NAME   AGE\n", "NAME AGE   \n", true},
		"another time and hash":            {"cluster-inventory-0123456789ab 2026-01-01T00:00:00Z", "cluster-inventory-abcdefabcdef 2027-02-02T11:11:11Z", true},
		"another value":                    {"a 1\n", "a 2\n", false},
		"another age":                      {"a 3s\n", "a 12m\n", true},
		"a line more":                      {"a\n", "a\nb\n", false},
		"a line less":                      {"a\nb\n", "a\n", false},
		"a line before":                    {"b\n", "a\nb\n", false},
		"left out at the end":              {"a\n...\n", "a\nb\nc\n", true},
		"left out at the beginning":        {"...\nc\n", "a\nb\nc\n", true},
		"left out in the middle":           {"a\n...\nd\n", "a\nb\nc\nd\n", true},
		"left out, and another end":        {"a\n...\ne\n", "a\nb\nc\nd\n", false},
		"left out, and a line after":       {"...\nb\n", "a\nb\nc\n", false},
		"the rest of a line left out":      {`{"a":["b",...]}`, `{"a":["b","c"]}`, true},
		"no rest of the line":              {`{"a":["b",...]}`, `{"a":["c"]}`, false},
		"everything left out":              {"...\n", "a\n", true},
		"part of a line is not the line":   {"...\nb\n", "a\nab\n", false},
		"nothing shown, nothing printed":   {"", "", true},
		"nothing shown, something printed": {"", "a\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Shows(test.page, test.printed); (err == nil) != test.want {
				t.Errorf("shown is %v, want %t", err, test.want)
			}
		})
	}
}
