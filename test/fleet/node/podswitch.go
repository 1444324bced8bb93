package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
)

// ownPodCIDR is the range of the pods with their own networks. It is the same on all nodes, because
// each has its own switch.
const ownPodCIDR = "10.244.0.0/24"

// podSwitch connects the networks of pods with each other and with the Services, which have their
// cluster addresses in it. It is a network namespace, too, without any route to the host.
type podSwitch struct {
	*network
	gateway   netip.Prefix
	addresses *addresses
}

const (
	bridgeName  = "pods"
	podLinkName = "eth0"
)

// newPodSwitch needs root.
func newPodSwitch() (*podSwitch, error) {
	n, err := newNetwork()
	if err != nil {
		return nil, err
	}
	s := &podSwitch{network: n, addresses: addressesOf(netip.MustParsePrefix(ownPodCIDR))}
	first, err := s.addresses.take("")
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	s.gateway = netip.PrefixFrom(netip.MustParseAddr(first), s.addresses.prefix.Bits())
	err = s.inside(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("make a bridge: %w", err)
		}
		return raise(bridge, s.gateway)
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return s, nil
}

// raise assigns an address to a link in this thread's network and brings the link up.
func raise(link netlink.Link, at netip.Prefix) error {
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(at)}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, at, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", link.Attrs().Name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// plug creates a network for a pod, with the preferred address if that is free.
func (s *podSwitch) plug(wish string) (_ *network, address string, err error) {
	address, err = s.addresses.take(wish)
	if err != nil {
		return nil, "", err
	}
	n, err := newNetwork()
	if err != nil {
		s.addresses.release(address)
		return nil, "", err
	}
	if err := s.connect(n, netip.MustParseAddr(address)); err != nil {
		s.addresses.release(address)
		return nil, "", errors.Join(err, n.close())
	}
	return n, address, nil
}

func (s *podSwitch) connect(n *network, at netip.Addr) error {
	raw, err := n.namespace.SyscallConn()
	if err != nil {
		return err
	}
	err = s.inside(func() error {
		bridge, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		var added error
		err = raw.Control(func(fd uintptr) {
			attributes := netlink.LinkAttrs{Name: linkName(at), MasterIndex: bridge.Attrs().Index}
			added = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: podLinkName, PeerNamespace: netlink.NsFd(fd)})
		})
		if err := errors.Join(err, added); err != nil {
			return fmt.Errorf("connect the network of a pod: %w", err)
		}
		link, err := netlink.LinkByName(linkName(at))
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
	if err != nil {
		return err
	}
	return n.inside(func() error {
		link, err := netlink.LinkByName(podLinkName)
		if err != nil {
			return err
		}
		if err := raise(link, netip.PrefixFrom(at, s.gateway.Bits())); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: s.gateway.Addr().AsSlice()})
	})
}

// linkName is the name of the switch's end of the link to a pod.
func linkName(at netip.Addr) string {
	return "pod-" + strings.ReplaceAll(strings.TrimPrefix(at.String(), "10.244."), ".", "-")
}

// unplug disconnects a pod's network and closes it.
func (s *podSwitch) unplug(n *network, address string) error {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	err = s.inside(func() error {
		link, err := netlink.LinkByName(linkName(at))
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	s.addresses.release(address)
	return errors.Join(err, n.close())
}

// assign adds an address to the switch, or removes it.
func (s *podSwitch) assign(address string, present bool) error {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	return s.inside(func() error {
		loopback, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		its := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(at, at.BitLen()))}
		if present {
			return netlink.AddrReplace(loopback, its)
		}
		return netlink.AddrDel(loopback, its)
	})
}
