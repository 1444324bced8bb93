// Package show prints what package decide reports: tables as kubectl prints them, lines,
// and JSON or YAML. Names and values come from clusters and tenants, so terminal control
// characters are escaped. Colours are for terminals only.
package show
