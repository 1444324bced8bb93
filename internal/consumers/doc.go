// Package consumers validates the versions of a ClusterProfile against what is read by consumers that
// cannot be run here: Argo CD's integration (argoproj-labs), Headlamp and Sveltos, in
// addition to those that can, such as Kueue and the Knative operator. What each of them
// reads, and does when it is missing, comes from their sources.
//
// Names and values are literals, since a consumer does not know our constants.
//
// validate.go decides, watch.go reads.
package consumers
