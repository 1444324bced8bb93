// Package decide says what kubectl inventory tells people: pure functions of what package
// gather has read, which apply the manager's own decisions.
package decide
