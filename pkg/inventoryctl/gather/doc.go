// Package gather reads a hub with the rights of whoever runs kubectl inventory: page by
// page, never by a watch, and never a Secret. What the reader may not read is told apart
// from what is not there.
package gather
