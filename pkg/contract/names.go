package contract

const (
	// AddonName is the name of the ClusterManagementAddOn and of the
	// ManagedClusterAddOn in every cluster namespace.
	AddonName = "cluster-inventory"

	// KeyPrefix starts every label and annotation key of this addon.
	KeyPrefix = "inventory.open-cluster-management.io/"

	// ClusterManagerName is the spec.clusterManager.name of every ClusterProfile
	// this addon writes, and the value of LabelClusterManager. It is Open
	// Cluster Management's name, which all published guides use, and immutable
	// on an existing profile.
	ClusterManagerName = "open-cluster-management"
)

// Labels and annotations users set to say what is published.
const (
	// LabelPublish on a ManagedClusterSetBinding with the value "false" keeps
	// the binding from publishing profiles. On a Placement with the value
	// "true" it makes the Placement narrow what its namespace publishes.
	LabelPublish = KeyPrefix + "publish"

	// AnnotationRequirePlacement on a Namespace with the value "true" keeps it
	// empty until a Placement labelled LabelPublish decides for a cluster.
	AnnotationRequirePlacement = KeyPrefix + "require-placement"

	// LabelSpokeOnly on a ClusterProperty, with any value, keeps it on the
	// spoke. The klusterlet honours the same label on ClusterClaims.
	LabelSpokeOnly = "open-cluster-management.io/spoke-only"
)

// Labels and annotations this addon writes.
const (
	// LabelManagedBy with the value ManagedBy is the mark: it is on every
	// object the addon created or adopted, and only a marked object is ever
	// changed or deleted.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// ManagedBy is the value of LabelManagedBy on objects of this addon.
	ManagedBy = "cluster-inventory-addon"

	// LabelClusterManager names the cluster manager of a ClusterProfile
	// (SIG-Multicluster, KEP-4322).
	LabelClusterManager = "x-k8s.io/cluster-manager"

	// LabelClusterName names the ManagedCluster a ClusterProfile describes.
	LabelClusterName = "open-cluster-management.io/cluster-name"

	// LabelClusterSet names the ManagedClusterSet that the cluster's own label
	// puts it in (SIG-Multicluster, KEP-4322). Absent when it has none.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"

	// ProfileConditionJoined is the condition of a ClusterProfile that shows
	// whether the cluster ever joined the hub. KEP-4322 names it; the API's
	// package has no constant for it.
	ProfileConditionJoined = "Joined"

	// AnnotationCopiedLabels on a ClusterProfile lists, separated by commas and
	// sorted, the keys of the labels this addon copied from the ManagedCluster.
	AnnotationCopiedLabels = KeyPrefix + "copied-labels"
)

// Access providers of a ClusterProfile.
const (
	// AccessProviderName is the access provider through cluster-proxy's user
	// server. Every published guide to Open Cluster Management's ClusterProfiles
	// uses this name.
	AccessProviderName = "open-cluster-management"

	// DirectAccessProviderName is the access provider for clusters that the hub
	// reaches without a proxy. Nothing publishes it unless the administrator
	// says so.
	DirectAccessProviderName = "direct"

	// ExecExtensionName is the extension of an access provider's cluster whose
	// content an exec plugin finds in its ExecCredential (client-go's exec
	// plugins; KEP-4322).
	ExecExtensionName = "client.authentication.k8s.io/exec"

	// ExecClusterName is the one key of that extension: the cluster's name.
	ExecClusterName = "clusterName"

	// LabelDirectAccess with the value "true" on a ConfigMap in the manager's
	// namespace makes it say how clusters are reached directly. Each key is a
	// cluster's name.
	LabelDirectAccess = KeyPrefix + "direct-access"
)

// Credentials: the tokens of ManagedServiceAccounts, copied to consumers.
const (
	// LabelSyncToProfile on a ManagedServiceAccount with the value "true" lets
	// its token be copied. Upstream's syncer uses the same label.
	LabelSyncToProfile = "authentication.open-cluster-management.io/sync-to-clusterprofile"

	// UpstreamSyncerClusterRole is what managed-serviceaccount's chart installs
	// exactly when its own syncer of tokens is on, by its gate ClusterProfile, before
	// v0.11 ClusterProfileCredSyncer
	// (charts/managed-serviceaccount/templates/clusterrole.yaml).
	UpstreamSyncerClusterRole = "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"

	// AnnotationSyncToNamespaces on a ManagedServiceAccount names the namespaces,
	// separated by commas, that its token is copied to.
	AnnotationSyncToNamespaces = KeyPrefix + "sync-to-namespaces"

	// LabelCredential with the value "true" is on every copy of a token, beside
	// LabelManagedBy.
	LabelCredential = KeyPrefix + "credential"

	// AnnotationSourceCluster and AnnotationSourceAccount on a copy name the
	// ManagedServiceAccount it was made from: its namespace, which is the
	// cluster's name, and its name. Either may be longer than a label's value.
	AnnotationSourceCluster = KeyPrefix + "source-cluster"
	AnnotationSourceAccount = KeyPrefix + "source-account"

	// AnnotationExpires on a copy is when its token expires (RFC 3339).
	AnnotationExpires = KeyPrefix + "expires"

	// CredentialTokenKey and CredentialCAKey are the keys of a copy, and of the
	// account's own Secret.
	CredentialTokenKey = "token"
	CredentialCAKey    = "ca.crt"

	// TokenSourceRole is the ClusterRole that lets the manager read a token in a
	// cluster's namespace, and the name of the RoleBinding to it there.
	TokenSourceRole = "open-cluster-management:cluster-inventory:token-source"

	// TokenTargetRole is the ClusterRole that lets the manager keep copies in a
	// consumer's namespace, and the name of the RoleBinding to it there.
	TokenTargetRole = "open-cluster-management:cluster-inventory:token-target"
)

// What chart, uninstall hook and manager agree on, on the hub.
const (
	// LeaseName is the Lease, in the manager's namespace, by which replicas
	// agree on one that works.
	LeaseName = "cluster-inventory-manager"

	// AccessStateName is the ConfigMap, in the manager's namespace, that remembers
	// by which certificates profiles say cluster-proxy is to be known, so that an
	// old CA is published until it expires. Whoever deletes it has the old ones
	// forgotten at once.
	AccessStateName = "cluster-inventory-access-ca"

	// ManagerServiceAccount is the manager's service account, in its namespace.
	ManagerServiceAccount = "cluster-inventory-manager"

	// AnnotationKeepProfiles on the ClusterManagementAddOn with the value "true"
	// tells the manager to leave every ClusterProfile as it is, whatever becomes
	// of the clusters' addons. The uninstall hook sets it and deletes a cluster's
	// addon only once that addon's ConditionProfilesSynced says
	// ReasonProfilesKept. In the end it takes the mark off the profiles, so that a
	// later installation leaves each alone until it publishes that cluster again.
	AnnotationKeepProfiles = KeyPrefix + "keep-profiles"
)

// What agent and clean-up hook agree on, on the spoke.
const (
	// CleanupMarkerName is the ConfigMap, in the addon's install namespace,
	// through which the clean-up hook tells the agent to stop publishing.
	CleanupMarkerName = "cluster-inventory-cleanup"

	// CleanupMarkerUID is the marker's key for the UID of the
	// ManagedClusterAddOn being removed. A marker with another UID is left over
	// from an earlier installation and ignored.
	CleanupMarkerUID = "addonUID"

	// CleanupMarkerStopped is the marker's key under which the agent records
	// the UID for which it has stopped publishing.
	CleanupMarkerStopped = "stopped"
)

// Limits of the APIs a property passes through.
const (
	// MaxPropertyValueBytes is the longest value of a ClusterClaim, a
	// ManagedCluster claim and a ClusterProfile property (their CRDs'
	// maxLength, which counts characters; bytes are never fewer).
	MaxPropertyValueBytes = 1024

	// MaxPropertyNameBytes is the longest name of a ClusterProfile property.
	MaxPropertyNameBytes = 253

	// DefaultClaimLimit is the klusterlet's default number of custom cluster
	// claims it reports (its flag max-custom-cluster-claims).
	DefaultClaimLimit = 20
)
