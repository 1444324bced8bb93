package fleet

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strings"
)

// portRange are the ports that servers may take: below the range from which
// the kernel picks ports for outgoing connections, so that a server that is
// restarted finds its port still free.
func portRange(ephemeral string) (low, high int) {
	low, high = 15000, 32000
	var from, to int
	if _, err := fmt.Sscan(ephemeral, &from, &to); err != nil {
		return low, high
	}
	switch {
	case from > low+2000:
		return low, from
	case to < 63000:
		return to + 1, 65000
	default: // the kernel may pick almost any port: take our chances
		return low, high
	}
}

// ports hands out free ports. The first try depends on where the fleet is, so
// that fleets that start at the same moment do not try the same ones.
type ports struct {
	low, high int
	next      int
	taken     map[int]bool
	free      func(port int) bool
}

func newPorts(seed string, taken map[int]bool) *ports {
	ephemeral, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		ephemeral = nil
	}
	low, high := portRange(strings.TrimSpace(string(ephemeral)))
	return &ports{low: low, high: high, next: low + spread(seed, high-low), taken: taken, free: portIsFree}
}

func (p *ports) pick() (int, error) {
	for range p.high - p.low {
		port := p.next
		if p.next++; p.next >= p.high {
			p.next = p.low
		}
		if !p.taken[port] && p.free(port) {
			p.taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", p.low, p.high)
}

// portIsFree asks the kernel, for loopback and for every interface: a server
// on all of them would shadow or refuse ours.
func portIsFree(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		listener, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return false
		}
		if err := listener.Close(); err != nil {
			return false
		}
	}
	return true
}

// networkPort is where a supervisor listens on its fleet's part of 127/8, and
// by that tells every other fleet on the machine that the part is taken.
const networkPort = 14999

func claimNetwork(network int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.%d.0.1:%d", network, networkPort))
}

// pickNetwork chooses the second octet of the pods' loopback addresses.
func pickNetwork(seed string, claim func(int) (net.Listener, error)) (int, error) {
	const low, count = 16, 200
	start := spread(seed, count)
	for i := range count {
		network := low + (start+i)%count
		listener, err := claim(network)
		if err != nil {
			continue
		}
		return network, listener.Close()
	}
	return 0, fmt.Errorf("every part of 127.0.0.0/8 is taken by another fleet")
}

// podCIDR is the range of the pods of the n-th cluster; the hub is number 0.
func podCIDR(network, n int) string {
	return fmt.Sprintf("127.%d.%d.0/24", network, n+1)
}

// serviceCIDR is the range of the Services of the n-th cluster, apart from those
// of all pods.
func serviceCIDR(network, n int) string {
	const first = 128
	return fmt.Sprintf("127.%d.%d.0/24", network, first+n+1)
}

func spread(seed string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // a hash never fails to be written
	return int(h.Sum32()%(1<<24)) % n
}
