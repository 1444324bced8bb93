package fleet

import (
	"os"
	"path/filepath"
	"testing"
)

// The first fleet builds a program, the next one finds it up to date, and one with other
// sources builds it again.
func TestFleetsShareWhatTheyBuild(t *testing.T) {
	root := t.TempDir()
	source := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built := func(fleet string) os.FileInfo {
		t.Helper()
		f := &Fleet{Dir: filepath.Join(root, ".fleet", fleet)}
		var program os.FileInfo
		err := f.Build(t.Context(), root, []string{"."}, func(dir string) (err error) {
			program, err = os.Stat(filepath.Join(dir, "hello"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	source("go.mod", "module example.com/hello\n\ngo 1.26\n")
	source("main.go", "package main\n\nfunc main() {}\n")
	first := built("one")
	if !os.SameFile(first, built("two")) {
		t.Error("the second fleet has built it again")
	}
	source("main.go", "package main\n\nfunc main() { println(1) }\n")
	if os.SameFile(first, built("two")) {
		t.Error("what was built is not of the present sources")
	}
}
