//go:build race

package hubtest

// underRace says that the tests run under the race detector, and so does the program.
const underRace = true
