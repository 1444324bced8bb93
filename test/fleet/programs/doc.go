// Package programs builds the upstream programs that a fleet is made of, and
// caches them.
//
// Versions are pinned by the modules in ../tools: one build list for all but
// managed-serviceaccount, so that what they share is compiled once. On two cores the
// first builds of that list take about 25 minutes together, and each later one a few
// seconds to a minute; managed-serviceaccount takes about 2 minutes more.
//
// Kueue and the Knative operator have lists of their own, too. They are built only for a
// fleet with consumers.
//
// It also builds the addon itself as it stood at an earlier commit (AddonAt), for stories of
// upgrades.
//
// A build is stored in the user's cache directory, in
// cluster-inventory-addon/<name>-<hash of everything that decides its content>. All of
// the user's checkouts share it, concurrent builders wait for each other by a lock, and
// builds unused for a month are removed.
package programs
