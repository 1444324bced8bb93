package fleet

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortRange(t *testing.T) {
	for name, test := range map[string]struct {
		ephemeral string
		want      [2]int
	}{
		"stock kernel: below what it picks from":         {"32768\t60999", [2]int{15000, 32768}},
		"kernel picks from low ports: above them":        {"1024\t50000", [2]int{50001, 65000}},
		"kernel picks from everything: no better choice": {"1024\t65535", [2]int{15000, 32000}},
		"unreadable: the stock kernel's":                 {"", [2]int{15000, 32000}},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := portRange(test.ephemeral)
			if diff := cmp.Diff(test.want, [2]int{low, high}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPickSkipsTakenAndBusyPortsAndWrapsAround(t *testing.T) {
	p := &ports{
		low:   100,
		high:  105,
		next:  103,
		taken: map[int]bool{104: true},
		free:  func(port int) bool { return port != 100 },
	}
	var picked []int
	for range 3 {
		port, err := p.pick()
		if err != nil {
			t.Fatal(err)
		}
		picked = append(picked, port)
	}
	if diff := cmp.Diff([]int{103, 101, 102}, picked); diff != "" {
		t.Error(diff)
	}
	if port, err := p.pick(); err == nil {
		t.Errorf("got port %d although none is left", port)
	}
}

func TestPortIsFree(t *testing.T) {
	// Not one that the kernel may give to another process once it is closed.
	port, err := newPorts(t.TempDir(), map[int]bool{}).pick()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	if portIsFree(port) {
		t.Errorf("port %d is said to be free while something listens there", port)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if !portIsFree(port) {
		t.Errorf("port %d is said to be taken although nothing listens there", port)
	}
}

func TestPickNetworkSkipsThoseOfOtherFleets(t *testing.T) {
	const seed = "/somewhere/.fleet/default"
	free := func(int) (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }
	first, err := pickNetwork(seed, free)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pickNetwork(seed, func(network int) (net.Listener, error) {
		if network == first {
			return nil, errors.New("address already in use")
		}
		return free(network)
	})
	if err != nil {
		t.Fatal(err)
	}
	if second == first || second < 1 || second > 254 {
		t.Errorf("first %d, then %d: want another octet", first, second)
	}
	if got := podCIDR(first, 0) == podCIDR(first, 1) || podCIDR(first, 1) == podCIDR(second, 1); got {
		t.Error("clusters share a range of pod addresses")
	}
}
