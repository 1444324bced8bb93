package credplugin

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// programName is the file name of an installed copy.
const programName = "cp-creds"

// programMode lets a consumer execute the program as any user.
const programMode os.FileMode = 0o755

// install atomically puts a copy of the running program into a directory and
// returns the copy's path. The program copies itself because its image contains
// no other program that could.
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
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Chmod(programMode), to.Sync(), to.Close())
	path = filepath.Join(dir, programName)
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return path, nil
}
