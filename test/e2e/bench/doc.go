// Package bench measures, on an idle fleet with the addon installed, how long a
// property's edit takes to reach its ClusterProfile, and what of that the hub
// manager takes, beside a bare loop that does nothing but watch and patch. Only
// ratios within one run mean anything on a shared machine; nothing here asserts
// a time.
package bench
