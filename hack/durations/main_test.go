package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	found, err := in(fstest.MapFS{
		"hub/b/b.go": {Data: []byte(`package b

import "time"

// wait is how long to wait. Then it ends.
const wait = 2 * time.Second

const (
	// retryFirst and retryMost bound a | b.
	retryFirst = time.Millisecond
	retryMost  = 2 * time.Minute

	lonely = 3 * 60 * time.Second
	number = 3
)

var notConstant = time.Second
`)},
		"hub/a/a.go": {Data: []byte(`package a

import "time"

const long = time.Hour + time.Minute // long is how long.
`)},
		"hub/a/a_test.go": {Data: []byte("package a\n\nimport \"time\"\n\nconst ofTest = time.Second\n")},
	}, "hub")
	if err != nil {
		t.Fatal(err)
	}
	const want = `| constant | value | what for |
|---|---:|---|
| ` + "`hub/a.long` | `time.Hour + time.Minute`" + ` | long is how long. |
| ` + "`hub/b.wait`" + ` | 2 s | wait is how long to wait. |
| ` + "`hub/b.retryFirst`" + ` | 1 ms | retryFirst and retryMost bound a \| b. |
| ` + "`hub/b.retryMost`" + ` | 2 min | retryFirst and retryMost bound a \| b. |
| ` + "`hub/b.lonely`" + ` | 3 × 60 s |  |
`
	if diff := cmp.Diff(want, table(found)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestReplace(t *testing.T) {
	got, err := replace("before\n"+begin+"\nold\n"+end+"\nafter\n", "new\n")
	if want := "before\n" + begin + "\n\nnew\n\n" + end + "\nafter\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := replace("a page without marks", "new\n"); err == nil {
		t.Error("a page without marks was changed")
	}
}
