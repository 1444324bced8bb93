// Package expiry holds the one story that takes as long as a token is valid. It has a fleet
// of its own, called "expiry", so that it runs in parallel with the other journeys, and
// none of them ends its consumer.
package expiry
