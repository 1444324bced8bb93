// Package credentials holds the stories of the way in to clusters: access providers,
// copied tokens, and the consumers that use them; and how all of these survive an upgrade
// and a rollback. Its fleet, called "credentials", has two spokes with cluster-proxy and
// managed-serviceaccount.
package credentials
