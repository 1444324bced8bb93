package main

import (
	"maps"
	"slices"
	"strings"
)

// slow are the packages of journeys that only e2e runs.
var slow = []string{
	// A token, and certificates, end after a quarter of an hour.
	"/journeys/expiry", "/journeys/registration",
	// An admin's day with 150 clusters takes four to eight minutes, and the largest fleet repeats the
	// quick start on a hub that manages itself.
	"/journeys/slices", "/journeys/localcluster",
	// A spoke that is lost needs a fleet of its own.
	"/journeys/departure",
}

// repeated are the journeys of other packages that only e2e runs, each with the folder and the name
// of a test that tells the same, or most of it, faster, mostly with the test in Open Cluster
// Management's place.
var repeated = map[string]string{
	// installation
	"TestAClusterHasItsOwnConfiguration":                "pkg/hub/addon TestConfigurations",
	"TestAnImageThatDoesNotExistStopsAtTheFirstCluster": "pkg/hub/addon TestRevisions",
	"TestUpstreamGateStopsWriting":                      "pkg/hub/inventory TestInventoryFollowsTheHub",
	"TestUnknownGateNeedsTheAdministratorsWord":         "pkg/hub/upstream TestGateWithoutRoleIsUnknownAfterStart",
	"TestStrategyIsNotChangedUnderTheClusters":          "charts TestInstallPlacementIsNotChangedUnderTheClusters",
	"TestWrongValuesAreRefused":                         "charts TestSchemaRejects",
	"TestUninstallCanKeepProfiles":                      "pkg/hub/uninstall TestUninstallKeepsProfiles",

	// credentials
	"TestTheManagersOwnObjectsComeBack":            "pkg/hub TestTheLeaseIsLeftToHelm",
	"TestWayInGoesWithItsGround":                   "pkg/hub/inventory TestProviderIsWithdrawnWithItsPrerequisites",
	"TestConsumersNeedNoImpersonation":             "test/e2e/journeys/credentials TestProfileSaysHowToConnect",
	"TestAdministratorOffersTheDirectWay":          "pkg/hub/inventory TestDirectAccessFollowsTheAdministrator",
	"TestConsumerLosesWithdrawnToken":              "cmd/cp-creds TestRunningConsumerLosesWithdrawnCopy",
	"TestDeletedAccountEndsItsTokens":              "test/e2e/journeys/credentials TestTokenIsWithdrawn",
	"TestAccountWithoutTargetIsNamed":              "pkg/hub/credentials TestAccountWithoutNamespaces",
	"TestTokenIsWithdrawnAfterTheManagerWasKilled": "charts TestOnAHub",
	"TestCopyIsRepaired":                           "pkg/hub/credentials TestACopyIsRepaired",
	"TestForgedProfileGetsNoToken":                 "pkg/hub/credentials TestForgedProfilesGetNothing",
	"TestForeignSecretIsLeftAlone":                 "pkg/hub/credentials TestNothingForeignIsTouched",
	"TestForgedUpstreamSecretIsLeftAlone":          "pkg/hub/credentials TestSecretThatOnlyLooksLikeUpstreamsStays",
	"TestCredentialsAreDrainedAndTurnedOff":        "charts TestOnAHub",
	"TestManagerRestartWritesNoCopies":             "pkg/hub/credentials TestARestartWithNothingChangedWritesNothing",
	"TestLookingAgainWritesNothing":                "pkg/hub/credentials TestIrrelevantChangesWriteNothing",
	"TestUpstreamsGatesComeAndGo":                  "pkg/hub/credentials TestUpstreamsSyncerTurnedOnAndOff",
	"TestMigrationAndBack":                         "pkg/hub/credentials TestUpstreamsCopiesAreTakenOverInPlace",
	"TestNoVersionOfAProfileBreaksAConsumer":       "pkg/hub/inventory TestNoVersionOfAProfileBreaksAConsumer",
	"TestPropertiesGuideWorksAsWritten":            "test/e2e/journeys/credentials TestQuickStartWorksAsWritten",
	"TestGuideToAClusterInventoryEndsWell":         "test/e2e/journeys/credentials TestProfileSaysHowToConnect",
	"TestGuideToAccessProvidersEndsWell":           "test/e2e/journeys/credentials TestConsumerListsItsClusters",
}

// mainOf leaves out, of the journeys, those that only e2e runs.
func mainOf(journeys suite) suite {
	journeys.without = slices.Concat(journeys.without, slow)
	journeys.skip = "^(" + strings.Join(slices.Sorted(maps.Keys(repeated)), "|") + ")$"
	return journeys
}
