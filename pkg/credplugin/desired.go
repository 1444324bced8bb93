package credplugin

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	execGroup   = "client.authentication.k8s.io"
	execVersion = execGroup + "/v1"
	execKind    = "ExecCredential"

	// serviceAccountPrefix starts the subject of every service account's token:
	// system:serviceaccount:<namespace>:<name>.
	serviceAccountPrefix = "system:serviceaccount:"
)

const (
	// skew is how long before its expiry a token is no longer used, to allow for clock skew and
	// for requests in progress.
	skew = 30 * time.Second

	// minCache keeps a client from running the plugin for every request when a
	// token is about to expire and there is no newer one.
	minCache = 5 * time.Second

	// maxTokenBytes is far above the size of any token, and below what servers
	// accept in a header.
	maxTokenBytes = 64 << 10

	// shownBytes is how much of an invalid name appears in an error.
	shownBytes = 80
)

// account identifies the ManagedServiceAccount whose token is wanted.
type account struct {
	cluster string // the cluster, and its namespace on the hub
	name    string
}

func (a account) String() string { return a.cluster + "/" + a.name }

// secret is the name of the copy of its token. managed-serviceaccount defined the
// scheme.
func (a account) secret() string { return a.cluster + "-" + a.name }

// credential is what the client receives.
type credential struct {
	token   string
	expires time.Time // when the client must ask again
}

// execInfo is the part of an ExecCredential that is used here.
type execInfo struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster *struct {
			Config *struct {
				ClusterName json.RawMessage `json:"clusterName"`
			} `json:"config"`
		} `json:"cluster"`
	} `json:"spec"`
}

// wantedAccount returns the account whose token the client asks for.
func wantedAccount(request, managedServiceAccount string) (account, error) {
	if strings.TrimSpace(request) == "" {
		return account{}, failf(ExitExecInfo,
			"$KUBERNETES_EXEC_INFO is not set: clients run this program, as execConfig.command of their provider file")
	}
	var info execInfo
	if err := json.Unmarshal([]byte(request), &info); err != nil {
		return account{}, failf(ExitExecInfo, "$KUBERNETES_EXEC_INFO cannot be parsed: %v", err)
	}
	switch cluster := info.Spec.Cluster; {
	case info.Kind != execKind || !strings.HasPrefix(info.APIVersion, execGroup+"/"):
		return account{}, failf(ExitExecInfo, "$KUBERNETES_EXEC_INFO is a %q of %q, not an %s of %s",
			shown(info.Kind), shown(info.APIVersion), execKind, execVersion)
	case info.APIVersion != execVersion:
		return account{}, failf(ExitExecInfo, "called with %q: set execConfig.apiVersion to %s in the provider file",
			shown(info.APIVersion), execVersion)
	case cluster == nil:
		return account{}, failf(ExitExecInfo,
			"called without cluster information: set execConfig.provideClusterInfo to true in the provider file")
	case cluster.Config == nil || len(cluster.Config.ClusterName) == 0:
		return account{}, failf(ExitExecInfo,
			"called without the cluster's name: the ClusterProfile's access provider has no extension %q with a %q",
			contract.ExecExtensionName, contract.ExecClusterName)
	default:
		return namedAccount(cluster.Config.ClusterName, managedServiceAccount)
	}
}

func namedAccount(clusterName json.RawMessage, managedServiceAccount string) (account, error) {
	var name string
	if err := json.Unmarshal(clusterName, &name); err != nil {
		return account{}, failf(ExitExecInfo, "the %s in the ClusterProfile's extension %q is not a string",
			contract.ExecClusterName, contract.ExecExtensionName)
	}
	wanted := account{cluster: name, name: managedServiceAccount}
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Subdomain(wanted.secret())) > 0 {
		return account{}, failf(ExitExecInfo,
			"%q, the %s in the ClusterProfile's extension %q, is not the name of a cluster",
			shown(name), contract.ExecClusterName, contract.ExecExtensionName)
	}
	return wanted, nil
}

// credentialFrom returns the token in a Secret and when the client has to ask
// again.
func credentialFrom(secret *corev1.Secret, wanted account, now time.Time, maxCache time.Duration) (credential, error) {
	where := secret.Namespace + "/" + secret.Name
	if problem := foreign(secret, wanted); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s is not used: %s", where, problem)
	}
	token := strings.TrimSpace(string(secret.Data[contract.CredentialTokenKey]))
	if problem := malformed(token); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s: its key %q %s; %s",
			where, contract.CredentialTokenKey, problem, lookAt(secret.Namespace, wanted))
	}
	claims := claimsOf(token)
	if problem := foreignToken(claims.Subject, wanted); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s is not used: %s", where, problem)
	}
	expiry := expiryOf(claims, secret.Annotations[contract.AnnotationExpires])
	if !expiry.IsZero() && !now.Before(expiry) {
		return credential{}, failf(ExitExpired, "the token in Secret %s expired at %s and no newer one arrived; %s",
			where, expiry.UTC().Format(time.RFC3339), lookAt(secret.Namespace, wanted))
	}
	return credential{token: token, expires: askAgain(expiry, now, maxCache)}, nil
}

// foreign says why a Secret is not the wanted account's, or returns "". A Secret
// without annotations is taken for what its name says, because copies made by
// managed-serviceaccount have none.
func foreign(secret *corev1.Secret, wanted account) string {
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return "it holds the token of a service account of the hub, which no other cluster may see"
	}
	source := account{
		cluster: secret.Annotations[contract.AnnotationSourceCluster],
		name:    secret.Annotations[contract.AnnotationSourceAccount],
	}
	if source == (account{}) || source == wanted {
		return ""
	}
	return "it is the copy of the ManagedServiceAccount " + shown(source.String()) + ", and " + wanted.String() +
		" is wanted: both accounts' copies have this name"
}

// malformed says why this cannot be a token, or returns "".
func malformed(token string) string {
	switch {
	case token == "":
		return "is missing or empty"
	case len(token) > maxTokenBytes:
		return "is too long for a token"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "contains characters that no token has"
	}
	return ""
}

// claims are the claims of a JSON Web Token that the plugin reads. The cluster verifies the
// token; this program does not.
type claims struct {
	Subject string  `json:"sub"`
	Expiry  float64 `json:"exp"` // seconds since 1970 (RFC 7519)
}

// claimsOf returns the token's claims, all empty if it is not a readable JSON Web
// Token.
func claimsOf(token string) claims {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}
	}
	var found claims
	if json.Unmarshal(payload, &found) != nil {
		return claims{}
	}
	return found
}

// foreignToken says why a token is not the wanted account's, or returns "". The
// service account on the cluster has the name of its ManagedServiceAccount.
func foreignToken(subject string, wanted account) string {
	name, isAccount := strings.CutPrefix(subject, serviceAccountPrefix)
	if _, after, found := strings.Cut(name, ":"); !isAccount || found && after == wanted.name {
		return ""
	}
	return "its token is for " + shown(subject) + ", not for an account named " + wanted.name
}

// expiryOf returns when the token expires, from its own claim or else from the
// annotation of the copy; the zero time means never.
func expiryOf(found claims, annotation string) time.Time {
	if found.Expiry > 0 {
		return time.Unix(int64(found.Expiry), 0)
	}
	expiry, _ := time.Parse(time.RFC3339, annotation) // the zero time if it is none
	return expiry
}

// askAgain returns when the client has to ask again: skew before the expiry or
// maxCache from now, whichever is earlier, but not sooner than minCache from now
// and never after the expiry.
func askAgain(expiry, now time.Time, maxCache time.Duration) time.Time {
	if expiry.IsZero() {
		return now.Add(maxCache)
	}
	left := expiry.Sub(now)
	return now.Add(min(maxCache, max(left-skew, minCache), left))
}

// lookAt says where the consumer finds out why there is no valid copy: events of its own
// namespace, which is all that it may be allowed to read.
func lookAt(namespace string, wanted account) string {
	return "the events of the ClusterProfile " + namespace + "/" + wanted.cluster +
		" or of the namespace's ManagedClusterSetBindings say why (kubectl events -n " + namespace + ")"
}

// shown shortens text from outside for an error message.
func shown(text string) string {
	if len(text) > shownBytes {
		return text[:shownBytes] + "..."
	}
	return text
}
