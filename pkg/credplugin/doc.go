// Package credplugin is the logic of cmd/cp-creds, the exec plugin (client-go
// credential plugins, KEP-4322) by which a consumer on the hub logs in to the
// cluster of a ClusterProfile. It takes the place of the plugin of
// managed-serviceaccount: the same flag, the same input, the same Secret, and
// the same order in which it finds API server and namespace.
//
// A client calls it with an ExecCredential in $KUBERNETES_EXEC_INFO that
// carries the cluster's name as the profile's access provider says it. The
// plugin reads one Secret, <cluster>-<account>, in the namespace the consumer
// runs in, and answers with the token in it and a time after which the client is
// to ask again: a little before the token expires, and after --max-cache at the
// latest, so that a consumer that keeps running stops using a withdrawn token.
//
// The cluster's name comes from the profile, and whoever may change the profile
// may put any name there. So it must be a name, the Secret must not say that it
// belongs to another account, and the token neither. What cannot be told here
// is whether the server in that profile is the cluster: whoever may write the
// status of ClusterProfiles in a consumer's namespace may send its token where
// they like.
//
// RBAC: get on Secrets in the consumer's namespace.
//
// A failure is one line on stderr and an exit code of its own (docs/consumers.md).
// No token is ever part of it.
package credplugin
