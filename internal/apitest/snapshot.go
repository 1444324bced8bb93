package apitest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Snapshot returns a copy of etcd's data as they are now. The server restarts.
func (s *Server) Snapshot(tb testing.TB) (data string) {
	tb.Helper()
	s.Config(tb)
	data = filepath.Join(tb.TempDir(), "etcd")
	s.restart(tb, func() { Must(tb, os.CopyFS(data, os.DirFS(s.etcdDir()))) })
	return data
}

// Restore restarts the server with the data of a snapshot. Resource versions go back to
// those of the snapshot. meanwhile, if not nil, is called while the server is down.
func (s *Server) Restore(tb testing.TB, data string, meanwhile func()) {
	tb.Helper()
	s.restart(tb, func() {
		if meanwhile != nil {
			meanwhile()
		}
		Must(tb, os.RemoveAll(s.etcdDir()))
		Must(tb, os.CopyFS(s.etcdDir(), os.DirFS(data)))
	})
}

// restart kills the server, and starts it at its old address.
func (s *Server) restart(tb testing.TB, meanwhile func()) {
	tb.Helper()
	server, etcd := s.env.ControlPlane.APIServer, s.env.ControlPlane.Etcd
	Must(tb, s.kill())
	Must(tb, etcd.Stop())
	meanwhile()
	// Otherwise each start adds all arguments again.
	etcd.Args, server.Args = nil, nil //nolint:staticcheck // they are deprecated, and set by each start
	Must(tb, etcd.Start())
	Must(tb, server.Start())
	Must(tb, s.ready())
}

// kill ends the API server at once: a regular end takes a minute if a watch is open.
func (s *Server) kill() error {
	content, err := os.ReadFile(s.pidFile())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return errors.Join(process.Kill(), s.env.ControlPlane.APIServer.Stop())
}

// recordPid returns a program that is the API server, and writes its process id to a file:
// envtest keeps the process to itself.
func (s *Server) recordPid() (program string, err error) {
	program = filepath.Join(s.dir, "kube-apiserver")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%q\nexec %q \"$@\"\n",
		s.pidFile(), filepath.Join(os.Getenv(assetsVariable), "kube-apiserver"))
	return program, os.WriteFile(program, []byte(script), 0o700) //nolint:gosec // it is executed
}

func (s *Server) pidFile() string { return filepath.Join(s.dir, "pid") }
