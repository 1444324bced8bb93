package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestACommitIsExportedAlsoFromAShallowClone(t *testing.T) {
	in := func(dir string, args ...string) string {
		t.Helper()
		args = append([]string{
			"-C", dir, "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false",
		}, args...)
		output, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, output)
		}
		return strings.TrimSpace(string(output))
	}
	origin, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	in(origin, "init", "--quiet")
	var commits []string
	for _, content := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(origin, "file"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		in(origin, "add", "file")
		in(origin, "commit", "--quiet", "--message", content)
		commits = append(commits, in(origin, "rev-parse", "HEAD"))
	}
	in(origin, "clone", "--quiet", "--depth=1", "file://"+origin, clone)
	for name, root := range map[string]string{"a clone with all commits": origin, "a shallow clone": clone} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "source")
			if err := exportCommit(t.Context(), root, commits[0], to); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(to, "file")); string(got) != "old" {
				t.Errorf("the file is %q (%v)", got, err)
			}
		})
	}
	err := exportCommit(t.Context(), clone, strings.Repeat("0123", 10), filepath.Join(t.TempDir(), "source"))
	if err == nil || !strings.Contains(err.Error(), "cannot be fetched") {
		t.Errorf("a commit that does not exist: %v", err)
	}
}
