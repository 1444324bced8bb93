package contract

// Conditions on the cluster's ManagedClusterAddOn. docs/operations.md gives,
// for every reason, its meaning and what to do.
const (
	// ConditionPropertiesPublished is set by the spoke agent: which
	// ClusterProperties became ClusterClaims, and which did not and why.
	ConditionPropertiesPublished = "PropertiesPublished"

	// ConditionProfilesSynced is set by the hub manager: in which namespaces
	// the cluster's ClusterProfile is what it should be, and what keeps the
	// others from it.
	ConditionProfilesSynced = "ProfilesSynced"

	// ConditionCredentialsSynced is set by the hub manager on clusters that have,
	// or had, ManagedServiceAccounts to copy: which tokens are where they should
	// be, and what keeps the others from it.
	ConditionCredentialsSynced = "CredentialsSynced"
)

// Reasons of ConditionPropertiesPublished.
const (
	// ReasonPublished: every property is published (status True).
	ReasonPublished = "Published"

	// ReasonPartiallyPublished: the message names the properties left out, and
	// why each (status False).
	ReasonPartiallyPublished = "PartiallyPublished"

	// ReasonClaimLimitExceeded: everything is a claim, but the klusterlet will
	// report only some; the message names those cut off and the Klusterlet
	// setting that lifts the limit (status False).
	ReasonClaimLimitExceeded = "ClaimLimitExceeded"

	// ReasonPropertyAPIMissing: the spoke serves no ClusterProperty API, so
	// there is nothing to publish; the agent follows its arrival (status False).
	ReasonPropertyAPIMissing = "ClusterPropertyAPIMissing"

	// ReasonPublishingStopped: the addon is being removed and its claims go
	// (status False).
	ReasonPublishingStopped = "PublishingStopped"
)

// Reasons of ConditionProfilesSynced.
const (
	// ReasonSynced: every profile that should exist does and says what it
	// should (status True).
	ReasonSynced = "Synced"

	// ReasonNotSelected: no namespace is to hold a profile of the cluster
	// (status True).
	ReasonNotSelected = "NotSelected"

	// ReasonInvalidProperties: profiles are in place, but the message names
	// claims that were left out: empty, too long or duplicated (status False).
	ReasonInvalidProperties = "InvalidProperties"

	// ReasonAccessUnavailable: profiles are in place, but without an access
	// provider that the cluster should have; the message says what is missing
	// (status False).
	ReasonAccessUnavailable = "AccessUnavailable"

	// ReasonForeignProfile: a ClusterProfile of the cluster's name belongs to
	// another cluster manager and was left alone (status False).
	ReasonForeignProfile = "ForeignProfile"

	// ReasonSelectionUnknown: it cannot be told whether a namespace is to hold
	// a profile; existing ones stay as they are (status Unknown).
	ReasonSelectionUnknown = "SelectionUnknown"

	// ReasonWriteFailed: the API server refused a write, for instance by a
	// quota or in a terminating namespace; it is tried again (status False).
	ReasonWriteFailed = "WriteFailed"

	// ReasonUpstreamGateOn: Open Cluster Management's own ClusterProfile
	// feature gate is on, so this addon writes no profiles (status False).
	ReasonUpstreamGateOn = "UpstreamGateOn"

	// ReasonUpstreamGateUnknown: it cannot be told whether that gate is on, and
	// no override says so, so this addon writes no profiles (status False).
	ReasonUpstreamGateUnknown = "UpstreamGateUnknown"

	// ReasonProfilesKept: the addon is being uninstalled from the hub, and
	// AnnotationKeepProfiles says that profiles stay as they are, so this addon
	// writes none (status False).
	ReasonProfilesKept = "ProfilesKept"

	// ReasonProfileAPIMissing: the hub serves no ClusterProfile API; its
	// arrival is followed (status False).
	ReasonProfileAPIMissing = "ClusterProfileAPIMissing"
)

// Reasons of ConditionCredentialsSynced. With several, the one that comes first
// here is the condition's; the message names all.
const (
	// ReasonCopied: every token is where it should be (status True).
	ReasonCopied = "Copied"

	// ReasonNoAccounts: no ManagedServiceAccount of the cluster is labelled to be
	// copied any more (status True).
	ReasonNoAccounts = "NoAccounts"

	// ReasonDraining: the manager removes all copies, and makes none
	// (status False).
	ReasonDraining = "Draining"

	// ReasonUpstreamSyncerOn: managed-serviceaccount's own syncer is on and writes
	// the Secrets of the same names, so this addon writes none (status False).
	ReasonUpstreamSyncerOn = "UpstreamSyncerOn"

	// ReasonNameCollision: two accounts would be copied to Secrets of one name,
	// so neither is (status False).
	ReasonNameCollision = "NameCollision"

	// ReasonNameTooLong: the Secret's name would be longer than a name may be
	// (status False).
	ReasonNameTooLong = "NameTooLong"

	// ReasonForeignSecret: a Secret of the copy's name is somebody else's and was
	// left alone (status False).
	ReasonForeignSecret = "ForeignSecret"

	// ReasonInvalidSource: the account's status names no Secret of its own, or
	// that Secret holds no token that could be used (status False).
	ReasonInvalidSource = "InvalidSource"

	// ReasonNoTarget: an account names no namespaces to copy to, and the manager
	// requires that (status False).
	ReasonNoTarget = "NoTarget"

	// ReasonTargetNotEntitled: an account names a namespace that has no
	// ClusterProfile of the cluster by the rule of what is published where
	// (status False).
	ReasonTargetNotEntitled = "TargetNotEntitled"

	// ReasonCopyFailed: the API server refused a read or a write; it is tried
	// again (status False).
	ReasonCopyFailed = "CopyFailed"

	// ReasonSelectionUnknown, as of ConditionProfilesSynced: it cannot be told
	// whether a namespace is entitled; copies that are there stay (status Unknown).
)
