// Package gather reads a hub with the rights of the user of kubectl inventory: page by
// page, and never a Secret. Only WatchProfiles opens a watch. It distinguishes objects that the user may
// not read from objects that do not exist.
package gather
