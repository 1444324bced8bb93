//go:build !race

package orders

// raced is true if the race detector makes everything slower.
const raced = false
