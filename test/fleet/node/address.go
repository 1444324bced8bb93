package node

import (
	"fmt"
	"net/netip"
	"sync"
)

// addresses allocates the addresses of a range to pods. A freed address is used last, so that a late
// client of a dead pod does not reach another one.
type addresses struct {
	prefix netip.Prefix

	mu   sync.Mutex
	used map[netip.Addr]bool
	last netip.Addr
}

// newAddresses takes a range such as 127.20.1.0/24. Only addresses in 127.0.0.0/8 are local on Linux
// without any set-up.
func newAddresses(cidr string) (*addresses, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("pod address range: %w", err)
	}
	prefix = prefix.Masked()
	if !prefix.Addr().Is4() || !prefix.Addr().IsLoopback() || prefix.Bits() > 30 {
		return nil, fmt.Errorf(
			"pod address range %s: want an IPv4 loopback range of at least 4 addresses, such as 127.20.1.0/24", cidr,
		)
	}
	return addressesOf(prefix), nil
}

func addressesOf(prefix netip.Prefix) *addresses {
	return &addresses{prefix: prefix, used: map[netip.Addr]bool{}, last: prefix.Addr()}
}

// take returns the preferred address if it is free and in the range, else the next free one. The
// first and the last address of the range are never used.
func (a *addresses) take(wish string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, err := netip.ParseAddr(wish); err == nil && a.usable(addr) && !a.used[addr] {
		a.used[addr] = true
		return addr.String(), nil
	}
	for addr := a.after(a.last); addr != a.last; addr = a.after(addr) {
		if a.usable(addr) && !a.used[addr] {
			a.used[addr], a.last = true, addr
			return addr.String(), nil
		}
	}
	return "", fmt.Errorf("no address of %s is free", a.prefix)
}

func (a *addresses) release(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, err := netip.ParseAddr(address); err == nil {
		delete(a.used, addr)
	}
}

func (a *addresses) usable(addr netip.Addr) bool {
	return a.prefix.Contains(addr) && addr != a.prefix.Addr() && a.prefix.Contains(addr.Next())
}

func (a *addresses) after(addr netip.Addr) netip.Addr {
	if next := addr.Next(); a.prefix.Contains(next) {
		return next
	}
	return a.prefix.Addr()
}
