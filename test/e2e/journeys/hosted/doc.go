// Package hosted holds the story of a cluster whose agent another one hosts.
package hosted
