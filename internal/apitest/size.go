package apitest

import (
	"os"
	"strconv"
	"testing"
)

// Size is how large a benchmark is: what the environment variable says, or else the
// fallback.
func Size(tb testing.TB, variable string, fallback int) int {
	tb.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return fallback
	}
	size, err := strconv.Atoi(value)
	if err != nil || size <= 0 {
		tb.Fatalf("%s=%q: want a positive number", variable, value)
	}
	return size
}
