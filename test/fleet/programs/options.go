package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ready is what the program's environment variable points at, if it is set.
func (p Program) ready() (string, error) {
	named := ""
	if p.env != "" {
		named = os.Getenv(p.env)
	}
	if named == "" {
		return "", nil
	}
	if p.image != nil {
		if info, err := os.Stat(named); err != nil || !info.IsDir() { //nolint:gosec // the user names it
			return "", fmt.Errorf("%s=%s: want a directory with what is at / in the image", p.env, named)
		}
		return filepath.Abs(named)
	}
	path, err := exec.LookPath(named)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.env, err)
	}
	return filepath.Abs(path)
}
