// Package registration holds the stories about how agents come to the hub. The klusterlet
// of one of its spokes registers addons by token, that of the other by certificate.
package registration
