package selection

import "time"

// Answer is the rule's answer for one pair of namespace and cluster. Only No may
// take anything away.
type Answer int

const (
	// Unknown means that the answer cannot be told, or not yet.
	Unknown Answer = iota
	// No means that the namespace must hold no profile of the cluster.
	No
	// Yes means that the namespace must hold a profile of the cluster.
	Yes
)

// Result is the rule's answer for one pair, and why.
type Result struct {
	Answer Answer

	// Why completes, for No and Unknown, a sentence that begins with the cluster.
	Why string

	// Again is set when time alone will change the answer: when to ask again.
	Again time.Duration
}
