// Package show prints what package decide says: tables as kubectl prints them, lines, and
// JSON or YAML. Names and values come from clusters and tenants, so whatever steers a
// terminal is escaped. Colours are for terminals only.
package show
