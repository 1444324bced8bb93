// Package consumers judges the versions of a ClusterProfile by what programs read of it that
// cannot all be run here: Argo CD's integration (argoproj-labs), Headlamp and Sveltos, beside
// those that can, such as Kueue and the Knative operator. It was established from their
// sources what each reads, and what it does when that goes.
//
// Names and values are written out, since a consumer does not know our constants.
//
// judge.go decides, watch.go reads.
package consumers
