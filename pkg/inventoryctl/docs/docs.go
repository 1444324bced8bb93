// Package docs says where the documentation is. Users of the plugin have only the plugin, so
// everything that it prints names an address instead of a file of this repository.
package docs

import (
	"regexp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

const repository = "https://github.com/open-cluster-management-io/cluster-inventory-addon"

var isRelease = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// URL returns the address of a page in the repository, such as docs/conditions.md#degraded, as of
// the release to which this program belongs, or of the newest state if it belongs to none.
func URL(page string) string {
	at := version.Get().Version
	if !isRelease.MatchString(at) {
		at = "main"
	}
	return repository + "/blob/" + at + "/" + page
}
