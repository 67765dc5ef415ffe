//go:build linux

package reactor

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fromSockaddr converts what the kernel wrote. IPv4-mapped addresses, which a
// dual-stack socket yields, become IPv4. A family without ports yields the zero
// AddrPort.
func fromSockaddr(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), hostOrder(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		ip := netip.AddrFrom16(in.Addr).Unmap()
		if in.Scope_id != 0 && ip.Is6() {
			ip = ip.WithZone(strconv.FormatUint(uint64(in.Scope_id), 10))
		}
		return netip.AddrPortFrom(ip, hostOrder(in.Port))
	}
	return netip.AddrPort{}
}

// toSockaddr fills sa, which is large enough for both families, and returns the
// address family and the bytes that are in use.
func toSockaddr(addr netip.AddrPort, sa *unix.RawSockaddrInet6) (family int, size uint32, err error) {
	ip := addr.Addr()
	switch {
	case ip.Is4() || ip.Is4In6():
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		*in = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkOrder(addr.Port()), Addr: ip.Unmap().As4()}
		return unix.AF_INET, unix.SizeofSockaddrInet4, nil
	case ip.Is6():
		scope, err := zoneIndex(ip.Zone())
		if err != nil {
			return 0, 0, err
		}
		*sa = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkOrder(addr.Port()), Addr: ip.As16(), Scope_id: scope}
		return unix.AF_INET6, unix.SizeofSockaddrInet6, nil
	}
	return 0, 0, fmt.Errorf("address %v is not valid", addr)
}

// zoneIndex returns the index of the interface that a zone names, by name or by
// number.
func zoneIndex(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("zone %q: %w", zone, err)
	}
	return uint32(ifi.Index), nil
}

// networkOrder and hostOrder swap a port's bytes on little-endian machines.
func networkOrder(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}

func hostOrder(p uint16) uint16 { return networkOrder(p) }
