package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAnImageIsADirectoryAndATagMayBeAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	for _, path := range []string{dir, TaggedImage(dir, "old")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "none"), TaggedImage(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	images := map[string]string{"example.com:1/a/b": dir}
	for image, want := range map[string]string{
		"example.com:1/a/b":               dir,
		"example.com:1/a/b:new":           dir,
		"example.com:1/a/b@sha256:00":     dir,
		"example.com:1/a/b:old":           dir + ".old",
		"example.com:1/a/b:old@sha256:00": dir + ".old",
		"example.com:1/a/b:lost":          "",
		"example.com:1/a/other:old":       "",
		"example.com:1/a":                 "",
	} {
		got, err := imageDir(images, image)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, want %q (%v)", image, got, want, err)
		}
	}
}
