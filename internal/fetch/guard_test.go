package fetch

import (
	"net/netip"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const (
		never    = iota // public: no guard refuses it
		private         // refused by private alone
		metadata        // refused by both
	)
	for addr, want := range map[string]int{
		"1.1.1.1": never, "8.8.8.8": never, "100.63.255.255": never, "100.128.0.0": never, "172.15.255.255": never, "172.32.0.0": never,
		"11.0.0.0": never, "126.255.255.255": never, "128.0.0.0": never, "169.253.255.255": never, "169.255.0.0": never, "192.0.1.0": never,
		"192.167.255.255": never, "192.169.0.0": never, "198.17.255.255": never, "198.20.0.0": never, "223.255.255.255": never, "168.63.129.17": never,
		"2606:4700::1111": never, "2001:4860:4860::8888": never, "2620:4f:8000::1": never, "3ffe::1": never,
		"::ffff:8.8.8.8": never, "64:ff9b::808:808": never, "2002:808:808::1": never,

		"0.0.0.0": private, "0.1.2.3": private, "10.0.0.1": private, "10.255.255.255": private, "100.64.0.0": private, "100.127.255.255": private,
		"127.0.0.1": private, "127.255.255.255": private, "172.16.0.0": private, "172.31.255.255": private, "192.0.0.1": private, "192.0.2.1": private,
		"192.88.99.1": private, "192.168.0.1": private, "198.18.0.1": private, "198.19.255.255": private, "198.51.100.1": private, "203.0.113.1": private,
		"224.0.0.1": private, "239.255.255.255": private, "240.0.0.1": private, "255.255.255.255": private,
		"::": private, "::1": private, "::2": private, "100::1": private, "100:0:0:1::1": private, "200::1": private, "1fff::1": private, "2001::": private,
		"2001:1ff:ffff::1": private, "2001:db8::1": private, "3fff::1": private, "4000::1": private, "5f00::1": private, "e000::1": private,
		"fc00::1": private, "fd00::1": private, "fdff::1": private, "fec0::1": private, "ff02::1": private, "ff0e::1": private,
		"::ffff:127.0.0.1": private, "::ffff:10.0.0.1": private, "::127.0.0.1": private, "::8.8.8.8": private, "::ffff:0:8.8.8.8": private,
		"64:ff9b::7f00:1": private, "64:ff9b::a00:1": private, "64:ff9b:1::808:808": private, "2002:7f00:1::1": private, "2002:c0a8:101::": private,
		"2606:4700::5efe:127.0.0.1": private, "2606:4700::200:5efe:10.0.0.1": private,

		"169.254.0.0": metadata, "169.254.169.254": metadata, "169.254.170.2": metadata, "169.254.255.255": metadata, "fe80::1": metadata,
		"fe80::1%lo": metadata, "fe80::a9fe:a9fe%eth0": metadata, "febf::1": metadata, "100.100.100.200": metadata, "192.0.0.192": metadata,
		"168.63.129.16": metadata, "fd00:ec2::254": metadata, "fd00:ec2::23": metadata, "fd20:ce::254": metadata, "fd00:c1::a9fe:a9fe": metadata,
		"fd00:42::42": metadata, "fd00:a9fe:a9fe::1": metadata, "fd00:100::100:200": metadata,
		"::ffff:169.254.169.254": metadata, "::ffff:100.100.100.200": metadata, "::169.254.169.254": metadata, "::ffff:0:169.254.169.254": metadata,
		"64:ff9b::169.254.169.254": metadata, "64:ff9b::a83f:8110": metadata, "2002:a9fe:a9fe::1": metadata,
		"64:ff9b:1::a9fe:a9fe": metadata, "64:ff9b:1:a9fe:a9:fe00::": metadata, "64:ff9b:1:a9:fe:a9fe::": metadata, "64:ff9b:1:0:a9:fea9:fe00:0": metadata,
		"2001:0:a9fe:a9fe::": metadata, "2001:0:808:808:0:0:5601:5601": metadata, "2606:4700::5efe:a9fe:a9fe": metadata, "2001:db8::200:5efe:a9fe:a9fe": metadata,
	} {
		a := netip.MustParseAddr(addr)
		for g, refuses := range map[guard]bool{guardOff: false, guardMetadata: want == metadata, guardPrivate: want != never} {
			if what := g.judge(a); what != "" != refuses {
				t.Errorf("%v: %s is %q, refused should be %v", g, addr, what, refuses)
			}
		}
	}
}

// Every address of every range is refused in every disguise.
func TestJudgeSeesThroughEveryForm(t *testing.T) {
	for _, list := range [][]network{cloud, special} {
		g := guardMetadata
		if &list[0] == &special[0] {
			g = guardPrivate
		}
		for _, n := range list {
			for _, a := range []netip.Addr{n.prefix.Addr(), last(n.prefix)} {
				forms := []netip.Addr{a}
				if a.Is4() {
					forms = append(forms, disguises(a)...)
				}
				for _, f := range forms {
					if g.judge(f) == "" {
						t.Errorf("%v admits %v, a form of %v (%s)", g, f, a, n.what)
					}
				}
			}
		}
	}
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func disguises(v4 netip.Addr) []netip.Addr {
	b := v4.As4()
	form := func(prefix string, at ...int) netip.Addr {
		a := netip.MustParseAddr(prefix).As16()
		for i, j := range at {
			a[j] = b[i]
		}
		return netip.AddrFrom16(a)
	}
	teredo := form("2001:0:808:808::", 12, 13, 14, 15).As16()
	for i := 12; i < 16; i++ {
		teredo[i] = ^teredo[i]
	}
	return []netip.Addr{
		form("::ffff:0:0", 12, 13, 14, 15), form("::", 12, 13, 14, 15), form("::ffff:0:0:0", 12, 13, 14, 15),
		form("64:ff9b::", 12, 13, 14, 15), form("64:ff9b:1::", 12, 13, 14, 15), form("64:ff9b:1::", 6, 7, 9, 10),
		form("64:ff9b:1::", 7, 9, 10, 11), form("64:ff9b:1::", 9, 10, 11, 12), form("2002::", 2, 3, 4, 5),
		form("2001::", 4, 5, 6, 7), netip.AddrFrom16(teredo), form("2606:4700::5efe:0:0", 12, 13, 14, 15),
	}
}

func TestLiteral(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.1": "127.0.0.1", "127.0.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f.1": "127.0.0.1",
		"0x7F000001": "127.0.0.1", "017700000001": "127.0.0.1", "0177.0.0.01": "127.0.0.1", "0": "0.0.0.0", "0x": "0.0.0.0", "00": "0.0.0.0",
		"127.0.0.1.": "127.0.0.1", "2852039166": "169.254.169.254", "0xa9.254.0251.254": "169.254.169.254", "4294967295": "255.255.255.255",
		"10.0.65535": "10.0.255.255", "::1": "::1", "fe80::1%lo": "fe80::1%lo", "::FFFF:127.0.0.1": "::ffff:127.0.0.1",
		"4294967296": "", "256.0.0.1": "", "127.256": "127.0.1.0", "1.2.3.256": "", "1.2.65536": "", "1.2.3.4.5": "", "": "", ".": "", "1..2": "", "1.2.3.4..": "",
		"+1": "", "-1": "", "0x+1": "", "0+1": "", "1_0": "", "0b1": "", "0o17": "", "08": "", "a": "", "1.a": "", "localhost": "",
		"99999999999999999999999999": "", "0x10000000000000000": "",
	} {
		got, ok := literal(host)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("literal(%q) = %v, %v; want %q", host, got, ok, want)
		}
	}
}

func TestHosts(t *testing.T) {
	hs, err := parseHosts("LIST", " example.org , API.example.com:8080,*.wild.org,[::1]:80,::2,[::3],127.1,bücher.de.,*.port.org:443,")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{
		"example.org|80": true, "example.org.|443": true, "EXAMPLE.org|1": true, "sub.example.org|80": false, "notexample.org|80": false,
		"api.example.com|8080": true, "api.example.com|80": false, "a.wild.org|80": true, "a.b.wild.org|80": true, "wild.org|80": false,
		".wild.org|80": false, "evilwild.org|80": false, "::1|80": true, "::1|81": false, "0:0::1|80": true, "::2|9": true, "::3|9": true,
		"127.0.0.1|80": true, "2130706433|80": true, "127.0.0.2|80": false, "xn--bcher-kva.de|80": true, "BÜCHER.de|80": true,
		"a.port.org|443": true, "a.port.org|80": false,
	} {
		name, port, _ := strings.Cut(at, "|")
		if got := hs.has(canonical(name), port); got != want {
			t.Errorf("has(%s) = %v", at, got)
		}
	}
	for _, bad := range []string{"http://example.org", "example.org/path", "a:0", "a:65536", "a:x", "a:", "*", "*.", "a.*.b", "*a.org", ".a.org", "user@host", "[::1", "10.0.0.0/8", "a b"} {
		if _, err := parseHosts("LIST", "good.org,"+bad); err == nil || !strings.Contains(err.Error(), "LIST has the entry") {
			t.Errorf("parseHosts(%q) = %v", bad, err)
		}
	}
}
