package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func adds(name string) func(*clientcmdapi.Config) error {
	return func(c *clientcmdapi.Config) error {
		c.Contexts[name] = &clientcmdapi.Context{Cluster: name}
		return nil
	}
}

// kubectl's own commands give up at once if the lock is taken, so they try again here.
func TestWritersAtTheSameTimeLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	apitest.Must(t, Update(t.Context(), path, adds("first")))
	const writers = 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if err := Update(t.Context(), path, adds(fmt.Sprint("ours-", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	config, err := clientcmd.LoadFromFile(path)
	apitest.Must(t, err)
	if len(config.Contexts) != writers+1 {
		t.Errorf("%d contexts are left of %d", len(config.Contexts), writers+1)
	}
	info, err := os.Stat(path)
	apitest.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %s", info.Mode())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	apitest.Must(t, err)
	if len(files) != 1 {
		t.Errorf("files are left over: %v", files)
	}
}

func TestFilesThatCannotBeWrittenStayAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		apitest.Must(t, os.WriteFile(path, []byte(content), 0o600))
		apitest.Must(t, os.Chmod(path, mode))
		return path
	}
	apitest.Must(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	for want, path := range map[string]string{
		"is a directory":          filepath.Join(dir, "directory"),
		"is read-only":            file("read-only", "apiVersion: v1\nkind: Config\n", 0o400),
		"is not a kubeconfig":     file("other", "apiVersion: v1\nkind: [", 0o600),
		"is not a regular file":   os.DevNull,
		"not a directory":         filepath.Join(dir, "other", "config"),
		"no kind \"Config\" is r": file("kind", "apiVersion: v2\nkind: Config\n", 0o600),
	} {
		before, _ := os.ReadFile(path)
		err := Update(t.Context(), path, adds("x"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q: %v", want, err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s was overwritten", path)
		}
	}
}

func TestNothingIsWrittenForNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	apitest.Must(t, Update(t.Context(), path, func(*clientcmdapi.Config) error { return nil }))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file was created: %v", err)
	}
	refused := errors.New("refused")
	err := Update(t.Context(), path, func(c *clientcmdapi.Config) error {
		apitest.Must(t, adds("x")(c))
		return refused
	})
	if _, statErr := os.Stat(path); !errors.Is(err, refused) || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("%v, %v", err, statErr)
	}
}

func TestSymbolicLinksStay(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	apitest.Must(t, Update(t.Context(), target, adds("x")))
	apitest.Must(t, os.Symlink(target, link))
	apitest.Must(t, Update(t.Context(), link, adds("y")))
	config, err := clientcmd.LoadFromFile(target)
	apitest.Must(t, err)
	info, err := os.Lstat(link)
	apitest.Must(t, err)
	if len(config.Contexts) != 2 || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("contexts %v, mode %s", config.Contexts, info.Mode())
	}
}
