// Package profiles decides what a pair's ClusterProfile must contain, and whether to create, change or
// remove it, from what was observed of the pair.
//
// Its functions are pure. They do no I/O, remember nothing and read no clock, so that kubectl inventory
// decides as the manager does. Package inventory observes, and applies what they return.
//
//   - decide.go: the next step for a profile, from the rule's answer and the guard's verdict;
//   - desired.go: what the profile must be, and the patches that lead there;
//   - decide_authorship.go: which properties of a profile are this addon's;
//   - decide_member.go: which cluster has which member id;
//   - decide_urgent.go: which changes must not wait for a profile's budget;
//   - own_part.go: the part of a profile whose changes by other clients are repaired;
//   - validate.go and trim.go: what is kept of what spokes and other clients send.
package profiles
