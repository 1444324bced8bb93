// Package hosted holds the story of a cluster whose agent another cluster hosts.
package hosted
