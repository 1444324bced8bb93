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
