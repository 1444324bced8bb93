// Package policies checks that the chart's ValidatingAdmissionPolicies are enforced. They limit
// what a stolen token of the manager can do, and nothing else shows that one was removed or
// weakened.
//
//   - desired.go lists what the chart installs: which requests each policy matches.
//   - validate.go compares a policy and its binding with that. It cannot tell whether the expressions
//     still refuse what they must.
//   - attempts.go has, for each policy that a request of the manager reaches, one that it must
//     refuse. They are sent as dry runs, so that nothing is stored if one is accepted.
//   - check.go reads and tries, for "manager check" and for the watch.
//   - watch.go repeats that in the manager, after its start and then every hour, and updates the
//     metrics and the log.
//
// It writes nothing.
//
// # RBAC
//
//	admissionregistration.k8s.io  validatingadmissionpolicies, validatingadmissionpolicybindings  get (by name)
//
// The dry runs need no further rights: where the manager has no right to send one, the API
// server refuses it before it reaches admission, and the policy is only read.
package policies
