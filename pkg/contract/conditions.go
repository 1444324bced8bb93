package contract

// Conditions on the cluster's ManagedClusterAddOn. docs/conditions.md gives,
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

	// ConditionConfigurationApplied is set by the hub manager if the cluster has a
	// configuration (AddOnDeploymentConfig) or the agent cannot be deployed as intended. It
	// says whether the agent's manifests match the configuration and, if not, why.
	ConditionConfigurationApplied = "ConfigurationApplied"

	// ConditionDegraded is set by the hub manager. It is True while any of the conditions
	// above is False. Its reason is that of the most important one, and its message names
	// all of them. "kubectl get managedclusteraddons" shows it.
	ConditionDegraded = "Degraded"
)

// ReasonAsExpected is the reason of ConditionDegraded while none of the addon's other
// conditions is False (status False).
const ReasonAsExpected = "AsExpected"

// Reasons of ConditionConfigurationApplied.
const (
	// ReasonConfigurationApplied: the agent's manifests match the configuration (status
	// True).
	ReasonConfigurationApplied = "Applied"

	// ReasonInvalidConfiguration: the configuration, or the ManagedCluster's annotation with
	// image registries, is invalid; the agent on the spoke stays as it is. The message names the
	// object, the field and the error (status False).
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonConfigurationMissing: the configuration does not exist; the agent on the spoke
	// stays as it is (status False).
	ReasonConfigurationMissing = "ConfigurationMissing"

	// ReasonInstallNamespaceChanged: the configuration names another namespace than the
	// agent runs in. The agent does not move, and the rest of the configuration is not
	// applied (status False).
	ReasonInstallNamespaceChanged = "InstallNamespaceChanged"

	// ReasonHostingRefused: the agent cannot run on the hosting cluster that the addon
	// names, or would have to move there; the message says why (status False).
	ReasonHostingRefused = "HostingRefused"

	// ReasonHostingDisabled: the agent should run, or runs, on a hosting cluster, and the
	// manager manages no such agents (status False).
	ReasonHostingDisabled = "HostingDisabled"

	// ReasonInstallNamespaceTaken: the agent's install namespace is in use by the agent of
	// another cluster, which the message names (status False).
	ReasonInstallNamespaceTaken = "InstallNamespaceTaken"

	// ReasonManifestsRefused: the spoke has refused one of the manifests for half a minute,
	// for instance because the install namespace is being deleted; its work agent retries
	// (status False).
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

	// ReasonHubKubeconfigInvalid: the agent cannot use the kubeconfig in its Secret and
	// continues with the previous one; the message names the Secret and what is wrong with
	// it (status False).
	ReasonHubKubeconfigInvalid = "HubKubeconfigInvalid"

	// ReasonManagedKubeconfigInvalid: the agent runs on a hosting cluster and cannot reach
	// the managed cluster; the message says what is wrong with the Secret that holds its
	// kubeconfig (status False).
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

	// ReasonInvalidProperties: profiles are in place, but lack what the message lists:
	// claims that are empty, too long, duplicated or beyond the limits of a profile, or a
	// Kubernetes version that is too long (status False).
	ReasonInvalidProperties = "InvalidProperties"

	// ReasonAccessUnavailable: profiles are in place, but lack an access provider that the
	// cluster should have; the message says why (status False).
	ReasonAccessUnavailable = "AccessUnavailable"

	// ReasonForeignProfile: a ClusterProfile of the cluster's name belongs to
	// another cluster manager and was left alone (status False).
	ReasonForeignProfile = "ForeignProfile"

	// ReasonSelectionUnknown: the manager cannot determine whether a namespace selects the
	// cluster; existing profiles stay as they are (status Unknown).
	ReasonSelectionUnknown = "SelectionUnknown"

	// ReasonWriteFailed: the API server refused a write, for instance because of a quota or
	// a terminating namespace; the manager retries (status False). A transient error is
	// reported once it has lasted for half a minute.
	ReasonWriteFailed = "WriteFailed"

	// ReasonContested: another client keeps changing a ClusterProfile or a copy of a token,
	// so this addon repairs it at a bounded rate (status False).
	ReasonContested = "Contested"

	// ReasonUpstreamGateOn: Open Cluster Management's own ClusterProfile
	// feature gate is on, so this addon writes nothing but access providers to
	// profiles (status False).
	ReasonUpstreamGateOn = "UpstreamGateOn"

	// ReasonUpstreamGateUnknown: the manager cannot determine whether that gate is on, and
	// no override asserts that it is off, so this addon writes no profiles (status False).
	ReasonUpstreamGateUnknown = "UpstreamGateUnknown"

	// ReasonProfilesKept: the addon is being uninstalled from the hub with
	// AnnotationKeepProfiles, or there is no ClusterManagementAddOn; profiles stay as they
	// are (status False).
	ReasonProfilesKept = "ProfilesKept"

	// ReasonProfileAPIMissing: the hub serves no ClusterProfile API; the manager writes
	// profiles once it does (status False).
	ReasonProfileAPIMissing = "ClusterProfileAPIMissing"
)

// Reasons of ConditionCredentialsSynced. If several apply, the condition has the one that
// comes first in this list, and its message names all.
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

	// ReasonNameCollision: two accounts would be copied to Secrets of the same name. An
	// existing copy is kept; without one, neither account is copied (status False).
	ReasonNameCollision = "NameCollision"

	// ReasonNameTooLong: the copy's name would exceed the length limit of Secret names
	// (status False).
	ReasonNameTooLong = "NameTooLong"

	// ReasonForeignSecret: a Secret with the copy's name exists that this addon neither
	// created nor may take over from managed-serviceaccount's own syncer; it was left alone
	// (status False).
	ReasonForeignSecret = "ForeignSecret"

	// ReasonInvalidSource: the account's status does not name its own Secret, or that Secret
	// holds no usable token (status False).
	ReasonInvalidSource = "InvalidSource"

	// ReasonNoTarget: the manager requires accounts to name the namespaces to copy to, and
	// an account names none (status False).
	ReasonNoTarget = "NoTarget"

	// ReasonTargetNotEntitled: an account names a namespace in which no
	// ClusterProfile of the cluster is published, or more than MaxTargets namespaces
	// (status False).
	ReasonTargetNotEntitled = "TargetNotEntitled"

	// ReasonCopyFailed: the API server refused a read or a write; the manager retries
	// (status False).
	ReasonCopyFailed = "CopyFailed"

	// ReasonContested and ReasonSelectionUnknown are reasons of this condition, too.
	// Contested: another client keeps changing a copy (status False). SelectionUnknown: the
	// manager cannot determine whether a namespace selects the cluster; existing copies
	// stay (status Unknown).
)
