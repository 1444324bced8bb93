// Package inventoryctl is the logic of cmd/kubectl-inventory, a kubectl plugin that shows
// who sees which clusters of the inventory, and why somebody does not.
//
//   - gather reads the hub with the reader's rights: page by page, never by a watch, and
//     never a Secret.
//   - decide says what follows, with the manager's own pure decisions.
//   - show prints it.
//
// It only reads. What the reader may not read is "not visible to you", and never guessed
// from something else. Each failure is one line on stderr that says what to do, and an
// exit code.
//
// # RBAC
//
// None is required; what the reader lacks is left out. docs/kubectl-inventory.md lists
// what each subcommand reads.
package inventoryctl
