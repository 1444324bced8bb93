package kube

import (
	"net"
	"strings"
)

// BindAddress puts host:port into the form net.Listen takes: the IPv6 address of
// a pod, as status.podIP has it, arrives without brackets. Whatever follows the
// last colon is the port. "0", which turns a server off, stays as it is.
func BindAddress(address string) string {
	colon := strings.LastIndex(address, ":")
	if colon < 0 || strings.HasPrefix(address, "[") {
		return address
	}
	return net.JoinHostPort(address[:colon], address[colon+1:])
}
