// Package gather reads a hub with the rights of the user of kubectl inventory: page by
// page, never by a watch, and never a Secret. It distinguishes objects that the user may
// not read from objects that do not exist.
package gather
