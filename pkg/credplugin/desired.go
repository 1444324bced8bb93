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
	// skew is how much before its expiry a token is no longer used, so that
	// clocks which differ a little, and a request under way, do no harm.
	skew = 30 * time.Second

	// minCache keeps a client from running the plugin for every request when a
	// token comes near its expiry and no newer one is there.
	minCache = 5 * time.Second

	// maxTokenBytes is far above any token, and below what servers accept in a
	// header.
	maxTokenBytes = 64 << 10

	// shownBytes is how much of a wrong name is worth repeating.
	shownBytes = 80
)

// account is the account that is wanted.
type account struct {
	cluster string // the cluster, and its namespace on the hub
	name    string
}

func (a account) String() string { return a.cluster + "/" + a.name }

// secret is the name of the copy of its token, as managed-serviceaccount
// made it up.
func (a account) secret() string { return a.cluster + "-" + a.name }

// credential is what the client is told.
type credential struct {
	token   string
	expires time.Time // when the client is to ask again
}

// execInfo is as much of an ExecCredential as matters here.
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

// wantedAccount returns whose token the client's request asks for.
func wantedAccount(request, managedServiceAccount string) (account, error) {
	if strings.TrimSpace(request) == "" {
		return account{}, failf(ExitExecInfo, "$KUBERNETES_EXEC_INFO is not set: this program is to be called by a client, as execConfig.command of its provider file says")
	}
	var info execInfo
	if err := json.Unmarshal([]byte(request), &info); err != nil {
		return account{}, failf(ExitExecInfo, "$KUBERNETES_EXEC_INFO cannot be understood: %v", err)
	}
	switch cluster := info.Spec.Cluster; {
	case info.Kind != execKind || !strings.HasPrefix(info.APIVersion, execGroup+"/"):
		return account{}, failf(ExitExecInfo, "$KUBERNETES_EXEC_INFO is a %q of %q, not an %s of %s", shown(info.Kind), shown(info.APIVersion), execKind, execVersion)
	case info.APIVersion != execVersion:
		return account{}, failf(ExitExecInfo, "called with %q: set execConfig.apiVersion to %s in the provider file", shown(info.APIVersion), execVersion)
	case cluster == nil:
		return account{}, failf(ExitExecInfo, "called without cluster information: set execConfig.provideClusterInfo to true in the provider file")
	case cluster.Config == nil || len(cluster.Config.ClusterName) == 0:
		return account{}, failf(ExitExecInfo, "called without the cluster's name: the access provider of the ClusterProfile has no extension %q with a %q", contract.ExecExtensionName, contract.ExecClusterName)
	default:
		return namedAccount(cluster.Config.ClusterName, managedServiceAccount)
	}
}

func namedAccount(clusterName json.RawMessage, managedServiceAccount string) (account, error) {
	var name string
	if err := json.Unmarshal(clusterName, &name); err != nil {
		return account{}, failf(ExitExecInfo, "the %s in the ClusterProfile's extension %q is not a string", contract.ExecClusterName, contract.ExecExtensionName)
	}
	wanted := account{cluster: name, name: managedServiceAccount}
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Subdomain(wanted.secret())) > 0 {
		return account{}, failf(ExitExecInfo, "%q, the %s in the ClusterProfile's extension %q, is not the name of a cluster", shown(name), contract.ExecClusterName, contract.ExecExtensionName)
	}
	return wanted, nil
}

// credentialFrom returns what the client may use of a Secret, and until when.
func credentialFrom(secret *corev1.Secret, wanted account, now time.Time, maxCache time.Duration) (credential, error) {
	where := secret.Namespace + "/" + secret.Name
	if problem := foreign(secret, wanted); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s is not used: %s", where, problem)
	}
	token := strings.TrimSpace(string(secret.Data[contract.CredentialTokenKey]))
	if problem := malformed(token); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s: its key %q %s; %s", where, contract.CredentialTokenKey, problem, lookAt(wanted))
	}
	claims := claimsOf(token)
	if problem := foreignToken(claims.Subject, wanted); problem != "" {
		return credential{}, failf(ExitUnusable, "Secret %s is not used: %s", where, problem)
	}
	expiry := expiryOf(claims, secret.Annotations[contract.AnnotationExpires])
	if !expiry.IsZero() && !now.Before(expiry) {
		return credential{}, failf(ExitExpired, "the token in Secret %s expired at %s and no newer one arrived; %s", where, expiry.UTC().Format(time.RFC3339), lookAt(wanted))
	}
	return credential{token: token, expires: askAgain(expiry, now, maxCache)}, nil
}

// foreign says what makes a Secret another's than the wanted account's, or
// nothing. A Secret that says nothing of itself is taken for what its name
// says: copies that managed-serviceaccount makes are like that.
func foreign(secret *corev1.Secret, wanted account) string {
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return "it holds the token of a service account of the hub, which no other cluster is to see"
	}
	source := account{cluster: secret.Annotations[contract.AnnotationSourceCluster], name: secret.Annotations[contract.AnnotationSourceAccount]}
	if source == (account{}) || source == wanted {
		return ""
	}
	return "it is the copy of the ManagedServiceAccount " + shown(source.String()) + ", and " + wanted.String() + " is wanted: their names run together"
}

// malformed says what makes a token none, or nothing.
func malformed(token string) string {
	switch {
	case token == "":
		return "is missing or empty"
	case len(token) > maxTokenBytes:
		return "is too long for a token"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "holds characters that no token has"
	}
	return ""
}

// claims are those of a JSON Web Token that matter here. The token is not
// verified: that is for the cluster to do.
type claims struct {
	Subject string  `json:"sub"`
	Expiry  float64 `json:"exp"` // seconds since 1970 (RFC 7519)
}

// claimsOf returns no claims where the token has none that can be read.
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
	if err := json.Unmarshal(payload, &found); err != nil {
		return claims{}
	}
	return found
}

// foreignToken says what makes a token another account's, or nothing. An
// account's name on its cluster is that of its ManagedServiceAccount.
func foreignToken(subject string, wanted account) string {
	name, isAccount := strings.CutPrefix(subject, serviceAccountPrefix)
	if _, after, found := strings.Cut(name, ":"); !isAccount || found && after == wanted.name {
		return ""
	}
	return "its token is for " + shown(subject) + ", and not for an account named " + wanted.name
}

// expiryOf returns when the token expires: as it says itself, else as its copy
// says, else never, the zero time.
func expiryOf(found claims, annotation string) time.Time {
	if found.Expiry > 0 {
		return time.Unix(int64(found.Expiry), 0)
	}
	expiry, err := time.Parse(time.RFC3339, annotation)
	if err != nil {
		return time.Time{}
	}
	return expiry
}

// askAgain returns the earlier of skew before the expiry and maxCache from now,
// but a moment from now at the earliest, and never after the expiry.
func askAgain(expiry, now time.Time, maxCache time.Duration) time.Time {
	again := now.Add(maxCache)
	if expiry.IsZero() || again.Before(expiry.Add(-skew)) {
		return again
	}
	soonest := now.Add(min(minCache, maxCache))
	if early := expiry.Add(-skew); early.After(soonest) {
		return early
	}
	if soonest.Before(expiry) {
		return soonest
	}
	return expiry
}

// lookAt says where the reason is found why a copy is not as it should be.
func lookAt(wanted account) string {
	return "see the condition " + contract.ConditionCredentialsSynced + " of the ManagedClusterAddOn " + wanted.cluster + "/" + contract.AddonName + " on the hub"
}

// missing is the failure where there is no copy.
func missing(wanted account, namespace place) *Failure {
	return failf(ExitNoSecret,
		"there is no Secret %s/%s (namespace %s): no token of the ManagedServiceAccount %s was copied there. On the hub, give that account the label %s=true and name %s in its annotation %s; %s",
		namespace.name, wanted.secret(), namespace.source, wanted, contract.LabelSyncToProfile, namespace.name, contract.AnnotationSyncToNamespaces, lookAt(wanted))
}

// place is the namespace the copy is in, and how that is known.
type place struct {
	name   string
	source string
}

// shown is as much of somebody else's text as is worth repeating.
func shown(text string) string {
	if len(text) > shownBytes {
		return text[:shownBytes] + "..."
	}
	return text
}
