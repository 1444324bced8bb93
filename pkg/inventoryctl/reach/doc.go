// Package reach tests the connection to a cluster that an access provider describes, hop by hop, and
// says at which one it ends.
//
// It uses the transport that every client with such a kubeconfig uses, so a proxy counts. It gets the
// token from the exec plugin, a child process, and sends it to no server but the cluster.
package reach
