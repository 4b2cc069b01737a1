package fetch

import (
	"fmt"
	"net/netip"
	"slices"
)

// A network is a range of addresses that a guard refuses, and what it is, to
// follow "is".
type network struct {
	prefix netip.Prefix
	what   string
}

// cloud are the addresses at which cloud platforms give machines their
// credentials and configuration, and the link-local ranges in which most of
// them lie.
var cloud = networks(
	"169.254.0.0/16", "a link-local address (RFC 3927), where clouds serve metadata",
	"fe80::/10", "a link-local address (RFC 4291)",
	"100.100.100.200/32", "the metadata address of Alibaba Cloud",
	"192.0.0.192/32", "the metadata address of Oracle Cloud",
	"168.63.129.16/32", "the platform address of Azure",
	"fd00:ec2::/32", "in the range of Amazon's instance services, metadata among them",
	"fd20:ce::254/128", "the metadata address of Google Cloud",
	"fd00:c1::a9fe:a9fe/128", "the metadata address of Oracle Cloud",
	"fd00:42::42/128", "the metadata address of Scaleway",
	"fd00:a9fe:a9fe::1/128", "the metadata address of Linode",
	"fd00:100::100:200/128", "the metadata address of Alibaba Cloud",
)

// cloudNames are host names of the same services. Where they resolve at all it
// is to an address of the table; the names count where they could be made to
// resolve to another.
var cloudNames = []string{"metadata.google.internal", "metadata.goog", "metadata.tencentyun.com", "instance-data.ec2.internal"}

// special are the ranges that are not public: the special-purpose registries of
// IANA (RFC 6890), multicast and reserved space. Of IPv6 only 2000::/3 has been
// handed out, so all else is refused whatever it is called. Ranges that carry an
// IPv4 address are not listed where that address decides (see embedded).
var special = networks(
	"0.0.0.0/8", "an address of this very host (RFC 791)",
	"10.0.0.0/8", "a private address (RFC 1918)",
	"100.64.0.0/10", "a shared address of a carrier (RFC 6598)",
	"127.0.0.0/8", "a loopback address (RFC 1122)",
	"172.16.0.0/12", "a private address (RFC 1918)",
	"192.0.0.0/24", "a protocol assignment (RFC 6890)",
	"192.0.2.0/24", "an address for documentation (RFC 5737)",
	"192.88.99.0/24", "a former relay address (RFC 7526)",
	"192.168.0.0/16", "a private address (RFC 1918)",
	"198.18.0.0/15", "an address for benchmarks (RFC 2544)",
	"198.51.100.0/24", "an address for documentation (RFC 5737)",
	"203.0.113.0/24", "an address for documentation (RFC 5737)",
	"224.0.0.0/4", "a multicast address (RFC 1112)",
	"240.0.0.0/4", "a reserved or broadcast address (RFC 1112)",
	"::/128", "an address of this very host (RFC 4291)",
	"::1/128", "a loopback address (RFC 4291)",
	"64:ff9b:1::/48", "a local translation address (RFC 8215)",
	"100::/64", "a discard address (RFC 6666)",
	"2001::/23", "a protocol assignment (RFC 2928)",
	"2001:db8::/32", "an address for documentation (RFC 3849)",
	"3fff::/20", "an address for documentation (RFC 9637)",
	"5f00::/16", "a segment routing identifier (RFC 9602)",
	"fc00::/7", "a private address (RFC 4193)",
	"fec0::/10", "a site-local address (RFC 3879)",
	"ff00::/8", "a multicast address (RFC 4291)",
)

var (
	public      = netip.MustParsePrefix("2000::/3")
	compatible  = netip.MustParsePrefix("::/96")           // RFC 4291, deprecated
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765, replaced
	nat64       = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64  = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour   = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo      = netip.MustParsePrefix("2001::/32")       // RFC 4380
	guards      = map[string]guard{"off": guardOff, "metadata": guardMetadata, "private": guardPrivate}
	guardValues = [...]string{"off", "metadata", "private"}
)

// A guard is what CONDUIT_URL_GUARD chooses.
type guard int

const (
	guardOff guard = iota
	guardMetadata
	guardPrivate
)

func (g guard) String() string { return "CONDUIT_URL_GUARD=" + guardValues[g] }

// name returns why no request may name the host, "" where it may.
func (g guard) name(host string) string {
	if g != guardOff && slices.Contains(cloudNames, host) {
		return fmt.Sprintf("%s is the name of a cloud metadata service, which %s refuses", host, g)
	}
	return ""
}

// judge returns why no connection may be made to addr, as what follows "is", or
// "" where it may.
func (g guard) judge(addr netip.Addr) string {
	if g == guardOff {
		return ""
	}
	addr = addr.WithZone("").Unmap() // a prefix contains no address with a zone
	if what := find(cloud, addr); what != "" {
		return what
	}
	inner := embedded(addr)
	for _, v4 := range inner {
		if what := find(cloud, v4); what != "" {
			return "an IPv6 form of " + what
		}
	}
	if g == guardMetadata {
		return ""
	}
	if what := find(special, addr); what != "" {
		return what
	}
	for _, v4 := range inner {
		if what := find(special, v4); what != "" {
			return "an IPv6 form of " + what
		}
	}
	if addr.Is6() && !public.Contains(addr) && !nat64.Contains(addr) {
		return "in no range of public addresses (RFC 4291)"
	}
	return ""
}

// embedded returns the IPv4 addresses that an IPv6 address may stand for on its
// way through a translator, a tunnel or an old stack.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	var found []netip.Addr
	at := func(i, j, k, l int) {
		found = append(found, netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}))
	}
	switch {
	case compatible.Contains(addr), translated.Contains(addr), nat64.Contains(addr):
		at(12, 13, 14, 15)
	case localNAT64.Contains(addr): // the four lengths of prefix that fit (RFC 6052, 2.2)
		at(6, 7, 9, 10)
		at(7, 9, 10, 11)
		at(9, 10, 11, 12)
		at(12, 13, 14, 15)
	case sixToFour.Contains(addr):
		at(2, 3, 4, 5)
	case teredo.Contains(addr): // a server, and a client whose bits are flipped
		at(4, 5, 6, 7)
		found = append(found, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP (RFC 5214)
		at(12, 13, 14, 15)
	}
	return found
}

func find(list []network, addr netip.Addr) string {
	for _, n := range list {
		if n.prefix.Contains(addr) {
			return n.what
		}
	}
	return ""
}

func networks(pairs ...string) []network {
	var list []network
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, network{netip.MustParsePrefix(pair[0]), pair[1]})
	}
	return list
}
