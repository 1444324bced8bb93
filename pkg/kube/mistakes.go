package kube

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Mistakes collects what is wrong with a command line, each mistake with its
// flag, so that a person reads all of them in one line of a log.
type Mistakes []string

// Add notes what is wrong with a flag.
func (m *Mistakes) Add(flag, format string, args ...any) {
	*m = append(*m, "--"+flag+": "+fmt.Sprintf(format, args...))
}

// Required notes a flag that was not given.
func (m *Mistakes) Required(flag, value string) {
	if value == "" {
		m.Add(flag, "is required")
	}
}

// Address notes an address that is neither host:port nor "0".
func (m *Mistakes) Address(flag, address string) {
	if _, _, err := net.SplitHostPort(address); address != "0" && err != nil {
		m.Add(flag, "%q is not host:port: %v", address, err)
	}
}

// Err returns every mistake in one line, sorted, or nil.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Sorted(slices.Values(m)), "; "))
}
