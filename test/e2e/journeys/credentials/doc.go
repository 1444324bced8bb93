// Package credentials holds the stories of access to clusters: access providers, copied
// tokens, and the consumers that use them; how all of these survive an upgrade and a
// rollback; and how they coexist with upstream's own feature gates. Its fleet, called
// "credentials", has two spokes with cluster-proxy and managed-serviceaccount.
package credentials
