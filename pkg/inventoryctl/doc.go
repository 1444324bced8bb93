// Package inventoryctl is the logic of cmd/kubectl-inventory, a kubectl plugin that shows
// which namespaces see which clusters of the inventory, and explains why one does not.
//
//   - gather reads the hub with the reader's rights: page by page, and never a Secret. Only
//     list --watch opens a watch.
//   - decide says what follows, with the manager's own pure decisions.
//   - show prints it.
//   - describe shows all that one ClusterProfile says.
//   - kubeconfig writes contexts for clusters into a kubeconfig.
//   - reach tests the connection to a cluster that a ClusterProfile describes.
//   - settings, rollout, where, columns and docs each know one thing that these need.
//
// It changes nothing on the hub. One subcommand reads a Secret: credential, the exec plugin of
// the contexts that kubeconfig writes, by the logic of pkg/credplugin; check-access runs it, too.
//
// What the reader may not read is "not visible to you", and never inferred from something else.
// Each failure is one line on stderr that says what to do, and an exit code.
//
// # RBAC
//
// None is required; what the reader may not read is left out. docs/kubectl-inventory.md
// lists what each subcommand reads.
package inventoryctl
