// Package decide determines what kubectl inventory reports: pure functions of what package
// gather has read, which apply the manager's own decisions.
package decide
