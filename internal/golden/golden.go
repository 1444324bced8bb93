// Package golden compares output for people with files that people have reviewed.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var update = flag.Bool("update", false, "write the output into testdata instead of comparing it")

// Check compares a text with testdata/<name>.golden of the package under test. With the
// flag -update it writes the file; review it before you commit it.
func Check(tb testing.TB, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		apitest.Must(tb, os.MkdirAll("testdata", 0o750))
		apitest.Must(tb, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	apitest.Must(tb, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s (-want +got); -update rewrites it:\n%s", path, diff)
	}
}
