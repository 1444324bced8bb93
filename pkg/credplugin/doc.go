// Package credplugin is the logic of cmd/cp-creds, the exec plugin (client-go
// credential plugins, KEP-4322) with which a consumer on the hub authenticates to
// the cluster of a ClusterProfile. It is a drop-in replacement for the plugin of
// managed-serviceaccount: it has the same flag, input and Secret, and looks for
// API server and namespace in the same order.
//
// A client calls it with an ExecCredential in $KUBERNETES_EXEC_INFO that contains
// the cluster's name from the profile's access provider. The plugin reads one
// Secret, <cluster>-<account>, in the consumer's namespace, and returns its token
// with an expiration time after which the client calls again: shortly before the
// token expires, and after --max-cache at the latest, so that a running consumer
// stops using a withdrawn token.
//
// The cluster's name comes from the profile, and users who can change the profile can put any
// name there. The plugin therefore checks that it is a valid name, and that neither the
// Secret nor the token says that it belongs to another account. It cannot check whether the
// server in the profile is the cluster's: users who may write the status of ClusterProfiles
// in a consumer's namespace can have the token sent to a server of their choice.
//
// RBAC: get on Secrets in the consumer's namespace.
//
// Each failure is one line on stderr and an exit code (docs/cp-creds.md). Neither
// ever contains a token.
package credplugin
