// Package bench measures, on an idle fleet with the addon installed, how long a property's
// edit takes to reach its ClusterProfile, and how much of that the hub manager takes,
// compared with a bare loop that only watches and patches. On a shared machine, only ratios
// within one run are meaningful; no benchmark asserts a time.
package bench
