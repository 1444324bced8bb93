package contract

// Conditions on the cluster's ManagedClusterAddOn. docs/operations.md gives,
// for every reason, its meaning and what to do.
const (
	// ConditionPropertiesPublished is set by the spoke agent. It says which
	// ClusterProperties became ClusterClaims, which did not, and why.
	ConditionPropertiesPublished = "PropertiesPublished"

	// ConditionProfilesSynced is set by the hub manager. It says whether the
	// cluster's ClusterProfile is up to date in every namespace and, where it is
	// not, why.
	ConditionProfilesSynced = "ProfilesSynced"

	// ConditionCredentialsSynced is set by the hub manager unless credentials are
	// disabled. It says whether every token of the cluster's ManagedServiceAccounts
	// was copied to every namespace it belongs in and, where it was not, why.
	ConditionCredentialsSynced = "CredentialsSynced"

	// ConditionConfigurationApplied is set by the hub manager where the cluster has a
	// configuration (AddOnDeploymentConfig), or where the agent cannot be deployed as it
	// should be. It says whether the agent's manifests are as the configuration says
	// and, if not, why.
	ConditionConfigurationApplied = "ConfigurationApplied"

	// ConditionDegraded is set by the hub manager. It is True while any of the
	// conditions above is False; then its reason is that of the most important one, and
	// its message names all of them. "kubectl get managedclusteraddons" shows it.
	ConditionDegraded = "Degraded"
)

// ReasonAsExpected is the reason of ConditionDegraded while none of the conditions it
// is made of is False (status False).
const ReasonAsExpected = "AsExpected"

// Reasons of ConditionConfigurationApplied.
const (
	// ReasonConfigurationApplied: the agent's manifests are as the configuration says
	// (status True).
	ReasonConfigurationApplied = "Applied"

	// ReasonInvalidConfiguration: the configuration, or the ManagedCluster's annotation
	// with registries, is wrong; what is on the spoke stays as it is. The message names
	// the object, the field and what is wrong (status False).
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonConfigurationMissing: the configuration does not exist; what is on the
	// spoke stays as it is (status False).
	ReasonConfigurationMissing = "ConfigurationMissing"

	// ReasonInstallNamespaceChanged: the agent would have to move to another namespace;
	// it stays, and nothing else of the configuration is applied (status False).
	ReasonInstallNamespaceChanged = "InstallNamespaceChanged"

	// ReasonHostingRefused: the agent is to run on a hosting cluster on which it cannot,
	// or to which it would have to move; the message says why (status False).
	ReasonHostingRefused = "HostingRefused"

	// ReasonInstallNamespaceTaken: the agent of another cluster, which the message names,
	// has the namespace in which this one is to run (status False).
	ReasonInstallNamespaceTaken = "InstallNamespaceTaken"

	// ReasonManifestsRefused: the spoke has refused one of the manifests for half a
	// minute, for instance because the install namespace is being deleted; its work
	// agent tries again (status False).
	ReasonManifestsRefused = "ManifestsRefused"
)

// Reasons of ConditionPropertiesPublished.
const (
	// ReasonPublished: every property is published (status True).
	ReasonPublished = "Published"

	// ReasonPartiallyPublished: some properties were left out; the message names
	// each, and why (status False).
	ReasonPartiallyPublished = "PartiallyPublished"

	// ReasonClaimLimitExceeded: every property is a claim, but the klusterlet
	// reports only some of them; the message names those cut off and the
	// Klusterlet setting that raises the limit (status False).
	ReasonClaimLimitExceeded = "ClaimLimitExceeded"

	// ReasonPropertyAPIMissing: the spoke serves no ClusterProperty API, so
	// there is nothing to publish; the agent starts once it does (status False).
	ReasonPropertyAPIMissing = "ClusterPropertyAPIMissing"

	// ReasonHubKubeconfigInvalid: the agent cannot use the kubeconfig that is in the
	// Secret now, and works with the previous one; the message names the Secret and
	// what is wrong with it (status False).
	ReasonHubKubeconfigInvalid = "HubKubeconfigInvalid"

	// ReasonManagedKubeconfigInvalid: the agent runs on a hosting cluster and lacks
	// access to the managed one; the message says what is wrong with the Secret that
	// gives it (status False).
	ReasonManagedKubeconfigInvalid = "ManagedKubeconfigInvalid"

	// ReasonPublishingStopped: the addon is being removed and its claims are
	// deleted (status False).
	ReasonPublishingStopped = "PublishingStopped"
)

// Reasons of ConditionProfilesSynced.
const (
	// ReasonSynced: every profile that should exist exists and is up to date. There
	// may be none, if no namespace selects the cluster (status True).
	ReasonSynced = "Synced"

	// ReasonInvalidProperties: profiles are in place, but without what the message
	// names: claims that are empty, too long, duplicated or beyond the limits of a
	// profile, or a Kubernetes version that is too long (status False).
	ReasonInvalidProperties = "InvalidProperties"

	// ReasonAccessUnavailable: profiles are in place, but without an access
	// provider that the cluster should have; the message says what is missing
	// (status False).
	ReasonAccessUnavailable = "AccessUnavailable"

	// ReasonForeignProfile: a ClusterProfile of the cluster's name belongs to
	// another cluster manager and was left alone (status False).
	ReasonForeignProfile = "ForeignProfile"

	// ReasonSelectionUnknown: whether a namespace selects the cluster cannot be
	// determined; existing profiles stay as they are (status Unknown).
	ReasonSelectionUnknown = "SelectionUnknown"

	// ReasonWriteFailed: the API server refused a write, for instance because of
	// a quota or a terminating namespace; it is retried (status False). An error
	// that may pass by itself counts once it has lasted for half a minute.
	ReasonWriteFailed = "WriteFailed"

	// ReasonContested: somebody else keeps changing a ClusterProfile, or a copy of a
	// token, so this addon puts it right at a bounded rate (status False).
	ReasonContested = "Contested"

	// ReasonUpstreamGateOn: Open Cluster Management's own ClusterProfile
	// feature gate is on, so this addon writes nothing but access providers to
	// profiles (status False).
	ReasonUpstreamGateOn = "UpstreamGateOn"

	// ReasonUpstreamGateUnknown: whether that gate is on cannot be determined,
	// and no override says that it is off, so this addon writes no profiles
	// (status False).
	ReasonUpstreamGateUnknown = "UpstreamGateUnknown"

	// ReasonProfilesKept: AnnotationKeepProfiles says that profiles stay as they
	// are while the addon is being uninstalled from the hub, or there is no
	// ClusterManagementAddOn; this addon writes no profiles (status False).
	ReasonProfilesKept = "ProfilesKept"

	// ReasonProfileAPIMissing: the hub serves no ClusterProfile API; the manager
	// starts writing profiles once it does (status False).
	ReasonProfileAPIMissing = "ClusterProfileAPIMissing"
)

// Reasons of ConditionCredentialsSynced. If several apply, the condition has the
// one listed first here, and its message names all.
const (
	// ReasonCopied: every token was copied everywhere it belongs. There may be none
	// to copy (status True).
	ReasonCopied = "Copied"

	// ReasonDraining: the manager removes all copies and makes no new ones
	// (status False).
	ReasonDraining = "Draining"

	// ReasonUpstreamSyncerOn: managed-serviceaccount's own syncer is on and writes
	// Secrets of the same names, so this addon writes none (status False).
	ReasonUpstreamSyncerOn = "UpstreamSyncerOn"

	// ReasonNameCollision: two accounts would be copied to Secrets of the same
	// name. The one whose copy is there keeps it; where none is, neither is copied
	// (status False).
	ReasonNameCollision = "NameCollision"

	// ReasonNameTooLong: the Secret's name would exceed the length limit of names
	// (status False).
	ReasonNameTooLong = "NameTooLong"

	// ReasonForeignSecret: a Secret with the copy's name exists that this addon
	// did not create, and that is not a copy of managed-serviceaccount's own syncer
	// which it may take over; it was left alone (status False).
	ReasonForeignSecret = "ForeignSecret"

	// ReasonInvalidSource: the account's status names no Secret of its own, or
	// that Secret holds no usable token (status False).
	ReasonInvalidSource = "InvalidSource"

	// ReasonNoTarget: an account names no namespaces to copy to, and the manager
	// requires that (status False).
	ReasonNoTarget = "NoTarget"

	// ReasonTargetNotEntitled: an account names a namespace in which no
	// ClusterProfile of the cluster is published, or more than MaxTargets namespaces
	// (status False).
	ReasonTargetNotEntitled = "TargetNotEntitled"

	// ReasonCopyFailed: the API server refused a read or a write; it is retried
	// (status False).
	ReasonCopyFailed = "CopyFailed"

	// ReasonContested and ReasonSelectionUnknown are reasons of this condition, too:
	// somebody else keeps changing a copy (status False), and whether a namespace
	// selects the cluster cannot be determined; existing copies stay (status Unknown).
)
