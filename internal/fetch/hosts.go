package fetch

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A host is one entry of a list of hosts.
type host struct {
	name string // canonical; the part after "*" (so with a dot) of a wildcard
	port string // "" for all
	wild bool
}

type hosts []host

// parseHosts reads the comma-separated list that variable env holds.
func parseHosts(env, list string) (hosts, error) {
	var hs hosts
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		bad := func() error {
			return fault.New(fault.ConfigInvalid, "%s has the entry %q; write host, host:port, [IPv6 address]:port or *.domain, without a scheme or path", env, fault.ClipTo(entry, repeated))
		}
		var h host
		h.name = entry
		if inner, ok := strings.CutPrefix(entry, "["); ok && strings.HasSuffix(inner, "]") {
			h.name = inner[:len(inner)-1]
		} else if _, err := netip.ParseAddr(entry); err == nil {
			h.name = entry // SplitHostPort would take the last group for a port
		} else if name, port, err := net.SplitHostPort(entry); err == nil {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return nil, bad()
			}
			h.name, h.port = name, strconv.FormatUint(n, 10)
		}
		h.name, h.wild = strings.CutPrefix(h.name, "*.")
		if h.name = canonical(h.name); !plausible(h.name) {
			return nil, bad()
		}
		if h.wild {
			h.name = "." + h.name
		}
		hs = append(hs, h)
	}
	return hs, nil
}

func plausible(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "*/:@[]?#% \t")
}

// has reports whether the list names the host, given as [canonical] returns it,
// at that port.
func (hs hosts) has(name, port string) bool {
	for _, h := range hs {
		if h.port != "" && h.port != port {
			continue
		}
		if h.wild && len(name) > len(h.name) && strings.HasSuffix(name, h.name) || !h.wild && name == h.name {
			return true
		}
	}
	return false
}

// canonical returns the one spelling under which host is compared: addresses as
// netip writes them, names in lower case, in their ASCII form, without a final
// dot.
func canonical(host string) string {
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if addr, ok := literal(host); ok {
		return addr.String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// target returns the canonical host and the port that u names.
func target(u *url.URL) (name, port string) {
	if port = u.Port(); port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return canonical(u.Hostname()), port
}

// literal returns the address that host spells. Besides the usual forms these
// are the historical ones of IPv4: one to four numbers, each decimal, octal or
// hexadecimal, the last of which fills the remaining bytes (0x7f.1, 2130706433).
// Some resolvers understand them and some do not; here they mean the same
// everywhere, so that the guard judges what they mean.
func literal(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var ip uint64
	for i, part := range parts {
		n, ok := number(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if !ok || n>>bits != 0 {
			return netip.Addr{}, false
		}
		ip = ip<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}), true
}

// number reads the digits of one part of an IPv4 address. Unlike strconv's base
// 0 it takes neither signs, underscores, 0b nor 0o, and "0x" is zero.
func number(s string) (uint64, bool) {
	base, digits := 10, s
	switch {
	case len(s) >= 2 && (s[:2] == "0x" || s[:2] == "0X"):
		base, digits = 16, s[2:]
		if digits == "" {
			return 0, true
		}
	case len(s) >= 2 && s[0] == '0':
		base, digits = 8, s[1:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}
