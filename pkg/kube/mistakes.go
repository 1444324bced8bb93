package kube

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Mistakes collects the invalid values of a command line, so that one log line reports them
// all, each with its flag.
type Mistakes []string

// Add records an error in a flag.
func (m *Mistakes) Add(flag, format string, args ...any) {
	*m = append(*m, "--"+flag+": "+fmt.Sprintf(format, args...))
}

// Required records an error if the flag has no value.
func (m *Mistakes) Required(flag, value string) {
	if value == "" {
		m.Add(flag, "is required")
	}
}

// Address records an error if the address is neither host:port nor "0".
func (m *Mistakes) Address(flag, address string) {
	if _, _, err := net.SplitHostPort(address); address != "0" && err != nil {
		m.Add(flag, "%q is not host:port: %v", address, err)
	}
}

// Positive records an error if the duration is not positive.
func (m *Mistakes) Positive(flag string, value time.Duration) {
	if value <= 0 {
		m.Add(flag, "%s is not positive", value)
	}
}

// Patterns records an error for each value that is not a pattern (IsPattern).
func (m *Mistakes) Patterns(flag string, values []string) {
	for _, value := range values {
		if !IsPattern(value) {
			m.Add(flag, "%q is not a pattern as in path.Match", value)
		}
	}
}

// Err returns an error with all of them on one line, sorted, or nil if there are none.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Sorted(slices.Values(m)), "; "))
}
