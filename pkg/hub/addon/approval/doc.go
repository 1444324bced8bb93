// Package approval approves the agents' certificate requests: the controller hub.csr-approval
// (approver.go), after validating them (validate.go).
//
// Writes: the approval of CertificateSigningRequests of this addon.
//
// Requeue: nothing happens without an event; a failed approval is retried after 50 ms, and later
// at growing intervals of at most a minute.
//
// RBAC:
//   - certificatesigningrequests: list, watch; approval: update; signer
//     kubernetes.io/kube-apiserver-client: approve;
//   - managedclusters, managedclusteraddons named cluster-inventory: list, watch.
package approval
