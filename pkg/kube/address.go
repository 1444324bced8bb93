package kube

import (
	"net"
	"strings"
)

// BindAddress returns host:port in the form that net.Listen accepts: a pod's IPv6
// address comes from status.podIP without brackets. The port is whatever follows
// the last colon. "0", which turns a server off, is returned unchanged.
func BindAddress(address string) string {
	colon := strings.LastIndex(address, ":")
	if colon < 0 || strings.HasPrefix(address, "[") {
		return address
	}
	return net.JoinHostPort(address[:colon], address[colon+1:])
}
