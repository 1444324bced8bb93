package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

func TestEveryVersionIsMadeOfThisTree(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	apitest.Must(t, err)
	patches, err := filepath.Glob(filepath.Join("versions", "*.patch"))
	apitest.Must(t, err)
	if len(patches) == 0 {
		t.Fatal("there is no other version")
	}
	for _, patch := range patches {
		t.Run(patch, func(t *testing.T) {
			overlay, err := applied(root, patch, t.TempDir())
			apitest.Must(t, err)
			content, err := os.ReadFile(overlay)
			apitest.Must(t, err)
			var of struct{ Replace map[string]string }
			apitest.Must(t, json.Unmarshal(content, &of))
			for from, to := range of.Replace {
				before, _ := os.ReadFile(from) // the patch may create it
				after, err := os.ReadFile(to)
				apitest.Must(t, err)
				if string(before) == string(after) {
					t.Errorf("%s does not change", from)
				}
			}
			apitest.Must(t, run(root, "go", "build", "-overlay="+overlay, "-o", os.DevNull, "./cmd/manager"))
		})
	}
}

func TestAPatchThatDoesNotApplyIsAnError(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		apitest.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	write("file.go", "package another\n")
	write("some.patch", "--- a/file.go\n+++ b/file.go\n@@ -1 +1 @@\n-package one\n+package two\n")
	if _, err := applied(folder, filepath.Join(folder, "some.patch"), t.TempDir()); err == nil {
		t.Error("it is applied")
	}
	write("empty.patch", "It changes nothing.\n")
	if _, err := applied(folder, filepath.Join(folder, "empty.patch"), t.TempDir()); err == nil {
		t.Error("it changes no file, and is applied")
	}
	write("file.go", "package one\n")
	if _, err := applied(folder, filepath.Join(folder, "some.patch"), t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestRewrites(t *testing.T) {
	before := map[string]string{
		profiles + " team-a/c1": "", profiles + " team-a/" + foreign: "", secrets + " team-a/c1-reader": "",
		secrets + " c1/reader": "", rightsResource + " c1/source": "",
		"managedclusteraddons.addon.open-cluster-management.io c1/cluster-inventory": "",
	}
	after := map[string]string{profiles + " team-a/c1": "changed", profiles + " team-a/c2": "", references + " team-a/view-0": ""}
	if got, want := rewrites(before, after), 2+1+1+2+1; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestOtherVersionsMayWriteEverythingOnce(t *testing.T) {
	for versions, want := range map[int]int{0: 2, 2: 2 + 2, 3: 2 + 4} { // of a profile, the status and the rest
		s, ref, got := good()
		got.versions = versions
		for len(got.record.Writes) < want {
			got.record.Writes = append(got.record.Writes, got.record.Writes[0])
		}
		if findings := check(s, ref, got); len(findings) > 0 {
			t.Errorf("%d versions: %q", versions, findings)
		}
		got.record.Writes = append(got.record.Writes, got.record.Writes[0])
		findings := check(s, ref, got)
		if len(findings) != 1 || !strings.HasPrefix(findings[0], ofNumber) {
			t.Errorf("%d versions and one more write: %q", versions, findings)
		}
	}
}

func TestLeadersOfPlans(t *testing.T) {
	for _, kind := range ofLeaders {
		if _, isPaused := pauseFor[kind]; isPaused == (kind == upgraded || kind == rolledBack) {
			t.Errorf("%s is paused: %t", kind, isPaused)
		}
	}
	l := &lane{program: "this"}
	for _, kind := range []proxy.Kind{paused, proxy.None} {
		if first, second := l.versionsOf(t, kind); first.program != "this" || second.program != "this" {
			t.Errorf("%s: %v leads and %v stands by", kind, first, second)
		}
	}
}
