// Package expiry holds the one story that takes as long as a token lives. It has
// a fleet of its own, called "expiry", so that it is told while the other
// journeys are, and none of them ends its consumer.
package expiry
