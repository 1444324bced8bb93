package credplugin

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// programName is what the program is called wherever it is installed.
const programName = "cp-creds"

// programMode lets a consumer execute the program, whichever user it runs as.
const programMode os.FileMode = 0o755

// install puts a copy of the running program into a directory, whole or not at
// all, and returns the copy's path. The image holds nothing that could copy a
// file, so the program does it itself.
func install(dir string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	from, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.CreateTemp(dir, "."+programName+"-*")
	if err != nil {
		return "", err
	}
	if err := fill(to, from); err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	path = filepath.Join(dir, programName)
	if err := os.Rename(to.Name(), path); err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return path, nil
}

// fill makes to a finished program, and closes it.
func fill(to, from *os.File) error {
	_, err := io.Copy(to, from)
	return errors.Join(err, to.Chmod(programMode), to.Sync(), to.Close())
}
