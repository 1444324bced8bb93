// Package clause negates one condition of the manager's decisions. Only hack/mutants makes the
// manager's code call it, with go build -overlay.
package clause

// Trial is what the searches of one package find when one clause is negated.
type Trial struct {
	Clause int

	// Begun is true in what is written before the searches, so that it shows which clause ended the process.
	Begun bool

	// Stories is in how many searches the clause is evaluated.
	Stories int

	Found   string // the violated invariant; empty: nothing
	Story   string // the search that found it
	States  int    // that it visited until then
	Seconds float64
}

// most is more than any clause's number.
const most = 10_000

var (
	negated int // 0: none
	reached [most]bool
)

// Is is called for each clause with its value, and returns the opposite for the negated one.
func Is(number int, value bool) bool {
	reached[number] = true
	return value != (number == negated)
}

// Negate chooses the clause that is negated, instead of the one before; 0 means none.
func Negate(number int) { negated = number }

// Reached returns the clauses that were called since it was last called.
func Reached() map[int]bool {
	numbers := map[int]bool{}
	for number, isReached := range reached {
		if isReached {
			numbers[number] = true
		}
	}
	reached = [most]bool{}
	return numbers
}
