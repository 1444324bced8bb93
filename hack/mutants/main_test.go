package main

import "testing"

// TestTargetsExist: a function that is renamed or moved must be renamed or moved in the list, too.
func TestTargetsExist(t *testing.T) {
	t.Chdir("../..")
	clauses, _, err := rewriteAll(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(clauses) == 0 {
		t.Error("there is nothing to negate")
	}
}
