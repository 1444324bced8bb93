package contract

const (
	// AddonName is the name of the ClusterManagementAddOn and of the
	// ManagedClusterAddOn in every cluster namespace.
	AddonName = "cluster-inventory"

	// HubKubeconfigSecret is the Secret in the agent's namespace in which the klusterlet
	// keeps the agent's kubeconfig for the hub (OCM, pkg/registration/spoke/addon).
	HubKubeconfigSecret = AddonName + "-hub-kubeconfig"

	// ManagedKubeconfigSecret is the Secret in the agent's namespace on a hosting cluster
	// through which the administrator gives the agent access to the managed cluster. Its
	// key "kubeconfig" holds a kubeconfig.
	ManagedKubeconfigSecret = AddonName + "-managed-kubeconfig"

	// KeyPrefix starts every label and annotation key of this addon.
	KeyPrefix = "inventory.open-cluster-management.io/"

	// ClusterManagerName is the spec.clusterManager.name of every ClusterProfile
	// this addon writes, and the value of LabelClusterManager. All published
	// guides use this name for Open Cluster Management. It is immutable on an
	// existing profile.
	ClusterManagerName = "open-cluster-management"
)

// AgentRevisions say what runs on a spoke. They are cluster-scoped objects of the hub,
// which the chart creates.
const (
	AgentRevisionGroup    = "inventory.open-cluster-management.io"
	AgentRevisionVersion  = "v1alpha1"
	AgentRevisionResource = "agentrevisions"
	AgentRevisionKind     = "AgentRevision"
)

// Labels and annotations that users set to control what is published.
const (
	// LabelPublish with the value "false" on a ManagedClusterSetBinding keeps
	// the binding from publishing profiles. With the value "true" on a Placement
	// it restricts what the namespace publishes to the Placement's decisions.
	LabelPublish = KeyPrefix + "publish"

	// AnnotationDisplayName on a ManagedCluster is the spec.displayName of its ClusterProfiles,
	// in place of its name.
	AnnotationDisplayName = KeyPrefix + "display-name"

	// AnnotationRequirePlacement with the value "true" on a Namespace restricts it to the
	// decisions of Placements labelled LabelPublish: without such a Placement, nothing is
	// published there.
	AnnotationRequirePlacement = KeyPrefix + "require-placement"

	// LabelSpokeOnly with any value on a ClusterProperty keeps it on the spoke.
	// The klusterlet honours the same label on ClusterClaims.
	LabelSpokeOnly = "open-cluster-management.io/spoke-only"
)

// Labels and annotations this addon writes.
const (
	// LabelManagedBy with the value ManagedBy is the mark: every object the addon
	// created or adopted has it, and only marked objects are ever changed or
	// deleted.
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

	// LabelInventoryMemberID identifies the cluster of a ClusterProfile to consumers: it is
	// never empty, the same in every namespace, and stable for as long as the cluster is a
	// member (SIG-Multicluster, KEP-4322). Here it is the ManagedCluster's label of this key,
	// if no other cluster has that id, or else its name, which survives a restore of the hub.
	// The API's Go package has no constant for it yet.
	LabelInventoryMemberID = "multicluster.x-k8s.io/inventory-member-id"

	// ProfileConditionJoined is the ClusterProfile condition that says whether the
	// cluster has ever joined the hub. KEP-4322 defines it; the API's Go package
	// has no constant for it.
	ProfileConditionJoined = "Joined"

	// AnnotationCopiedLabels on a ClusterProfile lists the keys of the labels that
	// this addon copied from the ManagedCluster's labels and properties, sorted and
	// comma-separated.
	AnnotationCopiedLabels = KeyPrefix + "copied-labels"

	// AnnotationProperties on a ClusterProfile lists the names of the properties that this
	// addon wrote, as a sorted JSON list. It exists where metadata.managedFields does not
	// say who wrote a property, as with atomic lists to which other clients write, too.
	AnnotationProperties = KeyPrefix + "properties"
)

// Annotations of the agent's Deployment on a spoke.
const (
	// AnnotationManifests is the revision of the manifests that the Deployment is from.
	AnnotationManifests = KeyPrefix + "manifests"

	// AnnotationContent is a hash of the Deployment's spec without what identifies the
	// cluster.
	AnnotationContent = KeyPrefix + "content"
)

// LabelAgentImage with the value "true" is on the Role and RoleBinding that the chart keeps
// for each AgentRevision, so that agents may run its image.
const LabelAgentImage = KeyPrefix + "agent-image"

// Access providers of a ClusterProfile.
const (
	// AccessProviderName is the access provider through cluster-proxy's user
	// server. Every published guide to Open Cluster Management's ClusterProfiles
	// uses this name.
	AccessProviderName = "open-cluster-management"

	// DirectAccessProviderName is the access provider for clusters that consumers
	// reach without a proxy. It is published only for clusters that a ConfigMap
	// labelled LabelDirectAccess names.
	DirectAccessProviderName = "direct"

	// ExecExtensionName is the extension of an access provider's cluster that
	// client-go passes to exec plugins as the cluster's config in the
	// ExecCredential (KEP-4322).
	ExecExtensionName = "client.authentication.k8s.io/exec"

	// ExecClusterName is the only key in that extension: the cluster's name.
	ExecClusterName = "clusterName"

	// LabelDirectAccess with the value "true" on a ConfigMap in the manager's namespace
	// marks it as describing how clusters are reached directly. Each key is the name of a
	// cluster.
	LabelDirectAccess = KeyPrefix + "direct-access"
)

// PlacementDecisions of SIG-Multicluster (KEP-5313), derived from those of Open Cluster
// Management.
const (
	// SchedulerName is the schedulerName of every PlacementDecision of this addon.
	SchedulerName = "cluster-inventory-addon"

	// LabelDecisionGroupIndex and LabelDecisionGroupName identify the decision group of the
	// Placement to which the clusters of a PlacementDecision belong. A group without a
	// name, such as the only one of a Placement that defines none, has no second label.
	LabelDecisionGroupIndex = KeyPrefix + "decision-group-index"
	LabelDecisionGroupName  = KeyPrefix + "decision-group-name"
)

// Credentials: the tokens of ManagedServiceAccounts, copied to consumers.
const (
	// LabelSyncToProfile with the value "true" on a ManagedServiceAccount allows
	// its token to be copied. Upstream's syncer uses the same label.
	LabelSyncToProfile = "authentication.open-cluster-management.io/sync-to-clusterprofile"

	// UpstreamSyncerClusterRole is the ClusterRole that managed-serviceaccount's chart
	// installs exactly when its own token syncer is on (feature gate ClusterProfile, before
	// v0.11 ClusterProfileCredSyncer;
	// charts/managed-serviceaccount/templates/clusterrole.yaml).
	UpstreamSyncerClusterRole = "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"

	// LabelUpstreamSynced is on every Secret that upstream's syncer wrote. Its value is the
	// Secret's name (managed-serviceaccount
	// pkg/addon/manager/controller/clusterprofile_cred_syncer.go).
	LabelUpstreamSynced = "authentication.open-cluster-management.io/synced-from"

	// AnnotationSyncToNamespaces on a ManagedServiceAccount lists the namespaces
	// that its token is copied to, comma-separated.
	AnnotationSyncToNamespaces = KeyPrefix + "sync-to-namespaces"

	// MaxTargets is how many namespaces of that list are used; later ones are ignored. Each
	// costs work whenever the account or its cluster changes.
	MaxTargets = 500

	// LabelCredential with the value "true" is on every copy of a token, together
	// with LabelManagedBy.
	LabelCredential = KeyPrefix + "credential"

	// AnnotationSourceCluster and AnnotationSourceAccount on a copy are the
	// namespace (the cluster's name) and the name of the ManagedServiceAccount it
	// was made from. They are not labels, because both may exceed the length
	// limit of a label value.
	AnnotationSourceCluster = KeyPrefix + "source-cluster"
	AnnotationSourceAccount = KeyPrefix + "source-account"

	// AnnotationExpires on a copy is the time at which its token expires (RFC 3339).
	AnnotationExpires = KeyPrefix + "expires"

	// CredentialTokenKey and CredentialCAKey are the data keys of both the copy and the
	// account's own Secret.
	CredentialTokenKey = "token"
	CredentialCAKey    = "ca.crt"

	// TokenSourceRole is the ClusterRole that lets the manager read a token in a
	// cluster's namespace, and the name of the RoleBinding to it there.
	TokenSourceRole = "open-cluster-management:cluster-inventory:token-source"

	// TokenTargetRole is the ClusterRole that lets the manager maintain copies in
	// a consumer's namespace, and the name of the RoleBinding to it there.
	TokenTargetRole = "open-cluster-management:cluster-inventory:token-target"
)

// Shared by the chart, the uninstall hook and the manager, on the hub.
const (
	// AgentRole is the ClusterRole that grants an agent its rights on the hub, and the name
	// of the RoleBinding to it in the cluster's namespace.
	AgentRole = "open-cluster-management:cluster-inventory:agent-on-hub"

	// LeaseName is the Lease for leader election, in the manager's namespace.
	LeaseName = "cluster-inventory-manager"

	// AccessStateName is the ConfigMap, in the manager's namespace, that stores which CA
	// certificates of cluster-proxy were published, so that an old CA stays published until
	// it expires. Deleting it drops old CAs at once.
	AccessStateName = "cluster-inventory-access-ca"

	// ManagerServiceAccount is the manager's service account, in its namespace.
	ManagerServiceAccount = "cluster-inventory-manager"

	// AnnotationKeepProfiles with the value "true" on the ClusterManagementAddOn tells the
	// manager to leave every ClusterProfile as it is, even when the clusters' addons are
	// removed. The uninstall hook sets it, and deletes a cluster's addon only after that
	// addon's ConditionProfilesSynced has ReasonProfilesKept. Finally it removes the mark
	// from the profiles, so that a later installation leaves each profile alone until it
	// publishes that cluster again.
	AnnotationKeepProfiles = KeyPrefix + "keep-profiles"

	// AnnotationExclusiveSetsOnly with the value "true" on the ClusterManagementAddOn says that
	// the manager runs with --exclusive-sets-only. The chart sets it for kubectl inventory.
	AnnotationExclusiveSetsOnly = KeyPrefix + "exclusive-sets-only"

	// AnnotationManagerNamespace on the ClusterManagementAddOn names the manager's namespace. The
	// chart sets it for kubectl inventory.
	AnnotationManagerNamespace = KeyPrefix + "manager-namespace"

	// ManagerDeployment is the manager's Deployment, in its namespace.
	ManagerDeployment = "cluster-inventory-manager"
)

// VariableProxyCA is the environment variable with the CA certificates, in PEM, of the
// proxy between the agent and the hub.
const VariableProxyCA = "PROXY_CA_BUNDLE"

// Shared by the agent and the clean-up hook, on the spoke.
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

// Limits of the APIs that a property passes through, and of a profile.
const (
	// MaxPropertyValueBytes is the maximum length of the value of a ClusterClaim, a
	// ManagedCluster claim and a ClusterProfile property. Their CRDs' maxLength counts
	// characters, so a limit in bytes is at least as strict.
	MaxPropertyValueBytes = 1024

	// MaxPropertyNameBytes is the maximum length of the name of a ClusterProfile property.
	MaxPropertyNameBytes = 253

	// DefaultMaxProperties is the maximum number of properties of a ClusterProfile, and
	// DefaultMaxPropertyBytes the maximum size of their names and values together. A
	// profile is written to every namespace that publishes its cluster.
	DefaultMaxProperties    = 1000
	DefaultMaxPropertyBytes = 64 << 10

	// MaxVersionBytes is the maximum length of the Kubernetes version in a ClusterProfile.
	MaxVersionBytes = 64

	// MaxRegistriesBytes is the maximum length of the image registries annotation of a
	// ManagedCluster. In the manager's memory, RegistriesTooLong stands for a longer one.
	MaxRegistriesBytes = 16 << 10
	RegistriesTooLong  = "too long"

	// DefaultClaimLimit is how many custom cluster claims a klusterlet reports by
	// default (its flag max-custom-cluster-claims).
	DefaultClaimLimit = 20
)
