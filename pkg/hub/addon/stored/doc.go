// Package stored reads this addon's ManagedClusterAddOns in the version in which the hub
// stores them, and converts them to v1beta1, which everything else here works with.
//
// Open Cluster Management 1.2 stores v1alpha1. Its webhook, which converts what is read in
// another version, takes one event at a time, some milliseconds each: while thousands of
// addons change, a watch of v1beta1 lags by minutes, and what is written on its grounds is
// refused as outdated. A watch of the stored version needs no webhook. Writes stay in
// v1beta1: the API server compares what each manager of fields has written in the version
// in which that was, so that writes in two versions would be converted more often.
//
// It writes nothing. Where v1alpha1 is not what is stored, the informers are the usual ones.
// While v1alpha1 is not served, addons are read in v1beta1.
package stored
