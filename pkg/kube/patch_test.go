package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func data(t *testing.T, patch client.Patch) string {
	t.Helper()
	if patch == nil {
		return ""
	}
	bytes, err := patch.Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}

func TestMergePatch(t *testing.T) {
	tests := map[string]struct {
		fields map[string]any
		want   string
	}{
		"no fields: the lock alone": {want: `{"metadata":{"resourceVersion":"7"}}`},
		"status: the lock is added": {
			fields: map[string]any{"status": map[string]any{"x": 1}},
			want:   `{"metadata":{"resourceVersion":"7"},"status":{"x":1}}`,
		},
		"metadata is kept and the lock joins it": {
			fields: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": nil}}},
			want:   `{"metadata":{"labels":{"a":null},"resourceVersion":"7"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := MergePatch("7", test.fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, data(t, patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionPatch(t *testing.T) {
	early, late := metav1.Unix(1, 0), metav1.Unix(2, 0)
	cond := func(typ string, status metav1.ConditionStatus, message string, at metav1.Time) metav1.Condition {
		return metav1.Condition{Type: typ, Status: status, Reason: "R", Message: message, LastTransitionTime: at}
	}
	foreign := cond("Foreign", "True", "", early)
	tests := map[string]struct {
		have []metav1.Condition
		want metav1.Condition
		data string
	}{
		"already says so: nothing to write": {
			have: []metav1.Condition{foreign, cond("Mine", "True", "m", early)},
			want: cond("Mine", "True", "m", late),
		},
		"new entry: appended": {
			have: []metav1.Condition{foreign},
			want: cond("Mine", "True", "m", late),
			data: `{"metadata":{"resourceVersion":"7"},"status":{"conditions":[` +
				`{"type":"Foreign","status":"True","lastTransitionTime":"1970-01-01T00:00:01Z","reason":"R","message":""},` +
				`{"type":"Mine","status":"True","lastTransitionTime":"1970-01-01T00:00:02Z","reason":"R","message":"m"}]}}`,
		},
		"other message, same status: the transition time stays": {
			have: []metav1.Condition{cond("Mine", "True", "m", early)},
			want: cond("Mine", "True", "n", late),
			data: `{"metadata":{"resourceVersion":"7"},"status":{"conditions":[` +
				`{"type":"Mine","status":"True","lastTransitionTime":"1970-01-01T00:00:01Z","reason":"R","message":"n"}]}}`,
		},
		"other status: the transition time is the new one": {
			have: []metav1.Condition{cond("Mine", "True", "m", early)},
			want: cond("Mine", "False", "m", late),
			data: `{"metadata":{"resourceVersion":"7"},"status":{"conditions":[` +
				`{"type":"Mine","status":"False","lastTransitionTime":"1970-01-01T00:00:02Z","reason":"R","message":"m"}]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := append([]metav1.Condition(nil), test.have...)
			patch, err := ConditionPatch("7", test.have, test.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.data, data(t, patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.have); diff != "" {
				t.Errorf("the given list was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	tests := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"fits":                              {text: "abcdef", limit: 6, want: "abcdef"},
		"too long: cut with dots":           {text: "abcdefg", limit: 6, want: "abc..."},
		"a character is not cut in two":     {text: "abäöü", limit: 6, want: "ab..."},
		"room only for the dots":            {text: "abcdef", limit: 2, want: "..."},
		"what does not print is escaped":    {text: "a\n\x1b[2Jb\u202e\xff", limit: 99, want: `a\n\x1b[2Jb\u202e\xff`},
		"quotes and spaces print":           {text: `"a" \ 'b'`, limit: 99, want: `"a" \ 'b'`},
		"an escape is not cut in two":       {text: "abcde\n\n", limit: 8, want: "abcde..."},
		"escaped, it does not fit any more": {text: "a\n\n\n", limit: 6, want: `a\n...`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Shorten(test.text, test.limit); got != test.want {
				t.Errorf("Shorten(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
			}
		})
	}
}

func TestListNames(t *testing.T) {
	names := []string{"a", "b", "c"}
	if got, want := ListNames(names, 3), "a, b, c"; got != want {
		t.Errorf("ListNames = %q, want %q", got, want)
	}
	if got, want := ListNames(names, 2), "a, b and 1 more"; got != want {
		t.Errorf("ListNames = %q, want %q", got, want)
	}
}

func TestNewEventFitsTheAPI(t *testing.T) {
	regarding := corev1.ObjectReference{Kind: "Thing", Namespace: "ns", Name: strings.Repeat("n", 253)}
	event := NewEvent(
		regarding, corev1.EventTypeNormal, "Reason", "Action", strings.Repeat("x", 2000), "c", "i", time.Unix(1, 0),
	)
	if len(event.GenerateName) > 248 || !strings.HasSuffix(event.GenerateName, "-") {
		t.Errorf("generateName %q leaves no room for a suffix", event.GenerateName)
	}
	if len(event.Note) != MaxEventNoteBytes {
		t.Errorf("the note has %d bytes, want %d", len(event.Note), MaxEventNoteBytes)
	}
}

func TestQuote(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"a name":              {name: "a.example", want: `"a.example"`},
		"none":                {want: `""`},
		"what does not print": {name: "a\n\xff", want: `"a\n\xff"`},
		"too long":            {name: strings.Repeat("n", 81), want: `"` + strings.Repeat("n", 77) + `..."`},
		"a character is not cut in two": {name: strings.Repeat("n", 76) + "ää--",
			want: `"` + strings.Repeat("n", 76) + `..."`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Quote(test.name); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
