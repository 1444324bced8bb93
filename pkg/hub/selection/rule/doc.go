// Package rule is the rule of what is published where: pure functions of what was observed. It
// reads no object, keeps no time and remembers nothing, so the manager, kubectl inventory and the
// search over all orders of a small world decide alike. Package selection's documentation says what
// the rule is.
//
//   - decide.go decides about a pair of namespace and cluster, and decide_facts.go says the same
//     step by step, to a reader who may lack rights.
//   - decide_settle.go decides again when something is absent, from what the caller remembers about
//     the absence, and says what must be read live for that.
//   - decide_choice.go decides what one Placement chooses.
//   - decide_members.go finds the cluster that keeps an id which several claim.
//   - decide_install.go decides whether the install strategy may create an addon again.
//   - decide_layout.go and summary.go decide what the slices of a Placement's decisions show about a
//     cluster that is in none.
//   - objects.go says how OCM's objects are read.
package rule
