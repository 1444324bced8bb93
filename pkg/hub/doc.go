// Package hub is the process that runs on the hub: its command line, its
// controller-runtime manager, and the list of its controllers. What they do is in
// the concern folders below; these never import each other, and meet here.
package hub
