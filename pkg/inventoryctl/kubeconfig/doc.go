// Package kubeconfig writes contexts for the clusters of ClusterProfiles into a kubeconfig.
//
//   - entry.go decides which address a profile offers.
//   - merge.go decides how a kubeconfig changes. It recognizes its own entries by an extension,
//     never by their names, and leaves all others alone.
//   - file.go writes the file: under kubectl's lock, and with one rename.
//
// No entry has a secret: the user of a context is an exec plugin.
package kubeconfig
