package kube

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// FlagErrors collects the invalid values of a command line, so that one log line reports them
// all, each with its flag.
type FlagErrors []string

// Add records an error in a flag.
func (e *FlagErrors) Add(flag, format string, args ...any) {
	*e = append(*e, "--"+flag+": "+fmt.Sprintf(format, args...))
}

// Required records an error if the flag has no value.
func (e *FlagErrors) Required(flag, value string) {
	if value == "" {
		e.Add(flag, "is required")
	}
}

// Address records an error if the address is neither host:port nor "0".
func (e *FlagErrors) Address(flag, address string) {
	if _, _, err := net.SplitHostPort(address); address != "0" && err != nil {
		e.Add(flag, "%q is not host:port: %v", address, err)
	}
}

// Positive records an error if the duration is not positive.
func (e *FlagErrors) Positive(flag string, value time.Duration) {
	if value <= 0 {
		e.Add(flag, "%s is not positive", value)
	}
}

// Patterns records an error for each value that is not a pattern (IsPattern).
func (e *FlagErrors) Patterns(flag string, values []string) {
	for _, value := range values {
		if !IsPattern(value) {
			e.Add(flag, "%q is not a pattern as in path.Match", value)
		}
	}
}

// Err returns an error with all of them on one line, sorted, or nil if there are none.
func (e FlagErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Sorted(slices.Values(e)), "; "))
}
