package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
)

// unused is how long a build stays cached without being used.
const unused = 30 * 24 * time.Hour

// cacheDir outlives every fleet and is shared by all checkouts of a user.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to cache built programs: %w", err)
	}
	dir := filepath.Join(base, "cluster-inventory-addon")
	return dir, os.MkdirAll(dir, files.PrivateDir)
}

// buildKey is a hash of everything that decides a build's content: the files in the
// given folders of dir, the Go version and the arguments.
func buildKey(ctx context.Context, dir string, folders, args []string) (string, error) {
	hash := sha256.New()
	for _, folder := range folders {
		sources, err := filepath.Glob(filepath.Join(dir, folder, "*.*"))
		if err != nil {
			return "", err
		}
		for _, source := range sources { // Glob sorts
			content, err := os.ReadFile(source)
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(source), len(content), content) // a hash never fails
		}
	}
	version, err := GoCommand(ctx, dir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(hash, "%s%s", version, args)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// tidy removes the program's builds that were last used before the given time.
func (p Program) tidy(cache string, since time.Time) {
	builds, _ := filepath.Glob(filepath.Join(cache, p.Name+"-*")) // the pattern is valid
	for _, build := range builds {
		if info, err := os.Stat(build); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(build) // it only takes up room
		}
	}
}

// Assets returns a directory with etcd and kube-apiserver, for KUBEBUILDER_ASSETS of
// tests against a real API server.
func Assets(ctx context.Context, root string, report *progress.Report) (string, error) {
	kube, err := Kube.Path(ctx, root, report)
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(kube))
	dir := filepath.Join(cache, "assets-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, files.PrivateDir); err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(kube, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	return dir, nil
}
