package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const testLimit = 1 << 20

func fetcher(t testing.TB, s Settings, names ...*net.Resolver) *Fetcher {
	t.Helper()
	if s.Timeout == 0 {
		s.Timeout = time.Hour // no test waits for it
	}
	if s.Guard == "" {
		s.Guard = "metadata"
	}
	resolver := net.DefaultResolver
	if len(names) > 0 {
		resolver = names[0]
	}
	c, err := newClient(s, resolver)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return New(c, testLimit, time.Now)
}

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serve starts a server that counts its requests.
func serve(t testing.TB, h http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &hits
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

func portOf(s *httptest.Server) string { return s.URL[strings.LastIndexByte(s.URL, ':')+1:] }

// fails checks the code of err and that its message holds each of the parts.
func fails(t testing.TB, what string, err error, code fault.Code, parts ...string) {
	t.Helper()
	got, message := fault.Of(err)
	if err == nil || got != code {
		t.Errorf("%s: %v (%s), want %s", what, err, got, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("%s: message %q lacks %q", what, message, part)
		}
	}
}

// names is a resolver that asks answer for the addresses of a name.
func names(t *testing.T, answer func(name string) []netip.Addr) *net.Resolver {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			q := m.Questions[0]
			found := answer(strings.TrimSuffix(q.Name.String(), "."))
			if len(found) == 0 {
				m.RCode = dnsmessage.RCodeNameError
			}
			for _, a := range found {
				head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
				switch {
				case a.Is4() && q.Type == dnsmessage.TypeA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
				case a.Is6() && q.Type == dnsmessage.TypeAAAA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
			if out, err := m.Pack(); err == nil {
				pc.WriteTo(out, from)
			}
		}
	})
	t.Cleanup(func() { pc.Close(); serving.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func addrs(list ...string) []netip.Addr {
	var as []netip.Addr
	for _, s := range list {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

// attacks are hosts that must be refused: under private all of them, under
// metadata the second kind, and which of them lead to this machine.
var attacks = struct{ local, private, metadata []string }{
	local: []string{"127.0.0.1", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.1", "0X7F000001", "017700000001", "0177.0.0.1",
		"localhost", "localhost.", "LOCALHOST", "0.0.0.0", "0", "１２７.0.0.1", "127。0。0。1"},
	private: []string{"[::1]", "[::]", "[::127.0.0.1]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[fec0::1]", "[ff02::1]",
		"224.0.0.1", "255.255.255.255", "198.18.0.1", "203.0.113.5", "[2001:db8::1]", "[64:ff9b::7f00:1]", "[64:ff9b::a00:1]", "[2002:7f00:1::1]"},
	metadata: []string{"169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518",
		"[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::]",
		"[fe80::1]", "[fe80::1%25lo]", "[FE80::1%25lo]", "[fd00:ec2::254]", "[fd20:ce::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"metadata.google.internal", "METADATA.google.internal.", "metadata.goog", "metadata.tencentyun.com", "instance-data.ec2.internal"},
}

func TestGuard(t *testing.T) {
	s, hits := serve(t, hello)
	for _, guard := range []string{"metadata", "private", "off"} {
		f := fetcher(t, Settings{Guard: guard})
		refused := attacks.metadata
		switch guard {
		case "private":
			refused = append(append(refused[:len(refused):len(refused)], attacks.private...), attacks.local...)
		case "off":
			refused = nil
		}
		for _, host := range refused {
			_, err := f.Get(t.Context(), parse(t, "http://"+host+":"+portOf(s)+"/"))
			fails(t, guard+" "+host, err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD="+guard, "CONDUIT_UNGUARDED_HOSTS")
		}
		if n := hits.Load(); n != 0 {
			t.Fatalf("%s: %d refused requests arrived", guard, n)
		}
		if guard == "private" {
			continue
		}
		for _, host := range attacks.local {
			doc, err := f.Get(t.Context(), parse(t, "http://"+host+":"+portOf(s)+"/"))
			if err != nil || string(doc.Body) != "hello" {
				t.Errorf("%s %s: %v", guard, host, err)
			}
		}
		hits.Store(0)
	}
}

// A literal is refused by the rule even where the system cannot dial it.
func TestGuardOnSystemsWithoutIPv6(t *testing.T) {
	f := fetcher(t, Settings{Guard: "private"})
	f.client.Transport.(*transport).dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	for _, host := range []string{"[::1]", "[fe80::1%25lo]", "[fd00:ec2::254]"} {
		_, err := f.Get(t.Context(), parse(t, "http://"+host+"/"))
		fails(t, host, err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD=private")
	}
}

func TestGuardOnRedirects(t *testing.T) {
	target, hits := serve(t, hello)
	to := ""
	front, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	start := parse(t, "http://front.test:"+portOf(front)+"/")
	resolver := names(t, func(name string) []netip.Addr { return addrs("127.0.0.1") })
	for guard, refused := range map[string][]string{"metadata": attacks.metadata, "private": append(append([]string(nil), attacks.local...), append(attacks.private, attacks.metadata...)...)} {
		f := fetcher(t, Settings{Guard: guard, Unguarded: "front.test"}, resolver)
		for _, host := range refused {
			to = "http://" + host + ":" + portOf(target) + "/secret"
			_, err := f.Get(t.Context(), start)
			fails(t, guard+" redirect to "+host, err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD="+guard)
		}
		if n := hits.Load(); n != 0 {
			t.Errorf("%s: %d requests reached the target", guard, n)
		}
	}
	to = target.URL
	if doc, err := fetcher(t, Settings{Guard: "metadata"}, resolver).Get(t.Context(), start); err != nil || string(doc.Body) != "hello" || hits.Load() != 1 {
		t.Errorf("the redirect by itself does not work: %v", err)
	}
}

func TestRedirects(t *testing.T) {
	var front *httptest.Server
	tls := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer tls.Close()
	plain, _ := serve(t, hello)
	front, hits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/count/%d", &n); {
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/count/%d", n-1), http.StatusFound)
		case err == nil:
			hello(w, r)
		case r.URL.Path == "/to":
			w.Header().Set("Location", r.URL.Query().Get("u"))
			w.WriteHeader(http.StatusMovedPermanently)
		case r.URL.Path == "/referer":
			io.WriteString(w, r.Header.Get("Referer"))
		default:
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		}
	})
	f := fetcher(t, Settings{})
	f.client.Transport.(*transport).base.TLSClientConfig = tls.Client().Transport.(*http.Transport).TLSClientConfig

	doc, err := f.Get(t.Context(), parse(t, "http://user:secret@"+front.Listener.Addr().String()+"/count/10"))
	if err != nil || string(doc.Body) != "hello" || !doc.Redirected() || doc.URL.String() != front.URL+"/count/0" {
		t.Errorf("10 redirects: %+v, %v", doc, err)
	}
	hits.Store(0)
	_, err = f.Get(t.Context(), parse(t, front.URL+"/count/11"))
	fails(t, "11 redirects", err, fault.HTTPRequestFailed, "more than 10 times")
	if n := hits.Load(); n != 11 {
		t.Errorf("11 redirects: %d requests, want 11", n)
	}
	_, err = f.Get(t.Context(), parse(t, front.URL+"/loop"))
	fails(t, "redirects for ever", err, fault.HTTPRequestFailed, "more than 10 times")

	to := func(u string) *url.URL { return parse(t, front.URL+"/to?u="+url.QueryEscape(u)) }
	for _, bad := range []string{"file:///etc/passwd", "FILE:/etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "data:text/html,hi", "jar:http://a!/b", "javascript:alert(1)"} {
		_, err := f.Get(t.Context(), to(bad))
		scheme, _, _ := strings.Cut(bad, ":")
		fails(t, bad, err, fault.HTTPRequestFailed, strings.ToLower(scheme), "only http and https")
	}
	_, err = f.Get(t.Context(), to("http:///nohost"))
	fails(t, "no host", err, fault.HTTPRequestFailed, "without a host")
	_, err = f.Get(t.Context(), to("http://[bad"))
	fails(t, "bad location", err, fault.HTTPRequestFailed)
	if strings.Contains(err.Error(), "[bad") {
		t.Errorf("message repeats what the server wrote: %v", err)
	}
	for _, good := range []string{tls.URL, plain.URL} {
		if doc, err := f.Get(t.Context(), to(good)); err != nil || string(doc.Body) != "hello" || doc.URL.String() != good {
			t.Errorf("redirect to %s: %v", good, err)
		}
	}
	if doc, err := f.Get(t.Context(), to(front.URL+"/referer")); err != nil || len(doc.Body) != 0 {
		t.Errorf("the Referer %s was sent on, %v", doc.Body, err)
	}
	if doc, err := f.Get(t.Context(), to("")); err != nil || doc.Status != http.StatusMovedPermanently {
		t.Errorf("301 without Location: %+v, %v", doc, err)
	}
}

// A name that answers with a harmless address first and a refused one later is
// judged by the address dialled, every time.
func TestRebinding(t *testing.T) {
	s, hits := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close"); hello(w, r) })
	var evil atomic.Bool
	resolver := names(t, func(name string) []netip.Addr {
		switch {
		case name == "both.test":
			return addrs("169.254.169.254", "fe80::1", "fd00:ec2::254")
		case name != "rebind.test":
			return nil
		case evil.Load():
			return addrs("169.254.169.254", "::ffff:169.254.169.254")
		}
		return addrs("127.0.0.1")
	})
	f := fetcher(t, Settings{}, resolver)
	u := parse(t, "http://rebind.test:"+portOf(s)+"/")
	if doc, err := f.Get(t.Context(), u); err != nil || string(doc.Body) != "hello" {
		t.Fatalf("before: %v", err)
	}
	evil.Store(true)
	_, err := f.Get(t.Context(), u)
	fails(t, "after", err, fault.HTTPRequestFailed, "rebind.test", "CONDUIT_URL_GUARD=metadata")
	_, err = f.Get(t.Context(), parse(t, "http://both.test:"+portOf(s)+"/"))
	fails(t, "every address", err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD=metadata")
	_, err = f.Get(t.Context(), parse(t, "http://none.test/"))
	fails(t, "no such name", err, fault.HTTPRequestFailed, `"none.test" does not exist`)
	if n := hits.Load(); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}

	f = fetcher(t, Settings{Guard: "private"}, resolver)
	evil.Store(false)
	_, err = f.Get(t.Context(), u)
	fails(t, "a name of this machine", err, fault.HTTPRequestFailed, "rebind.test is a loopback address", "CONDUIT_URL_GUARD=private")
}

// An exemption holds for the host that it names and for no other, not even where
// both are the same server and a connection to it is open.
func TestUnguarded(t *testing.T) {
	s, hits := serve(t, hello)
	port := portOf(s)
	other, _ := serve(t, hello)
	resolver := names(t, func(string) []netip.Addr { return addrs("127.0.0.1") })
	f := fetcher(t, Settings{Guard: "private", Unguarded: "a.test:" + port + ", *.wild.test, 127.0.0.1:" + port}, resolver)
	for _, host := range []string{"a.test:" + port, "A.TEST.:" + port, "x.wild.test:" + port, "127.0.0.1:" + port, "127.1:" + port, "x.wild.test:" + portOf(other)} {
		if _, err := f.Get(t.Context(), parse(t, "http://"+host)); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	n := hits.Load()
	for _, host := range []string{"b.test:" + port, "wild.test:" + port, "a.test:" + portOf(other), "127.0.0.2:" + port, "127.0.0.1:" + portOf(other), "localhost:" + port} {
		_, err := f.Get(t.Context(), parse(t, "http://"+host))
		fails(t, host, err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD=private")
	}
	if hits.Load() != n {
		t.Error("a refused request arrived")
	}
	if _, err := fetcher(t, Settings{Guard: "metadata", Unguarded: "metadata.goog"}, resolver).Get(t.Context(), parse(t, "http://metadata.goog:"+port)); err != nil {
		t.Errorf("an exempt metadata name: %v", err)
	}
}

func TestAllowedAndDisabled(t *testing.T) {
	s, hits := serve(t, hello)
	evil, evilHits := serve(t, hello)
	front, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL, http.StatusFound) })
	f := fetcher(t, Settings{Allowed: "example.org, 127.0.0.1:" + portOf(s) + ",127.0.0.1:" + portOf(front)})
	if _, err := f.Get(t.Context(), parse(t, s.URL)); err != nil {
		t.Error(err)
	}
	for _, u := range []string{evil.URL, front.URL, "http://localhost:" + portOf(s)} {
		_, err := f.Get(t.Context(), parse(t, u))
		fails(t, u, err, fault.HTTPRequestFailed, "CONDUIT_ALLOWED_HOSTS")
	}
	// To be allowed is not to be exempt.
	_, err := fetcher(t, Settings{Guard: "private", Allowed: "127.0.0.1"}).Get(t.Context(), parse(t, s.URL))
	fails(t, "allowed but guarded", err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD=private")
	_, err = fetcher(t, Settings{Disabled: true}).Get(t.Context(), parse(t, s.URL))
	fails(t, "disabled", err, fault.HTTPRequestFailed, "CONDUIT_DISABLE_URLS")
	if hits.Load() != 1 || evilHits.Load() != 0 {
		t.Errorf("%d and %d requests arrived, want 1 and 0", hits.Load(), evilHits.Load())
	}
}

func TestInvalidURLs(t *testing.T) {
	f := fetcher(t, Settings{Guard: "off"})
	for _, u := range []string{"file:///etc/passwd", "FILE:///etc/passwd", "gopher://127.0.0.1/", "data:text/html,hi", "//host/path", "/etc/passwd", "http:///path", "http:opaque", "https://:443/"} {
		_, err := f.Get(t.Context(), parse(t, u))
		fails(t, u, err, fault.HTTPInvalidURL)
	}
}

func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	s, _ := serve(t, hello)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	tr := fetcher(t, Settings{}).client.Transport.(*transport)
	if tr.base.Proxy != nil {
		t.Error("a proxy is asked for")
	}
	resolver := names(t, func(string) []netip.Addr { return addrs("127.0.0.1") })
	// A name, since proxies of the environment are never used for loopback addresses.
	if doc, err := fetcher(t, Settings{}, resolver).Get(t.Context(), parse(t, "http://site.test:"+portOf(s))); err != nil || string(doc.Body) != "hello" {
		t.Error(err)
	}
}

// proxy answers for every host itself and remembers what it was asked.
func proxy(t *testing.T, answer http.HandlerFunc) (*httptest.Server, func() []string) {
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s, func() []string { mu.Lock(); defer mu.Unlock(); return asked }
}

func TestProxy(t *testing.T) {
	p, asked := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "http://inside.test/", http.StatusFound)
		default:
			hello(w, r)
		}
	})
	resolver := names(t, func(name string) []netip.Addr {
		switch name {
		case "site.test":
			return addrs("8.8.8.8", "2606:4700::1111")
		case "inside.test":
			return addrs("8.8.8.8", "10.0.0.1") // one bad address is enough
		case "imds.test":
			return addrs("169.254.169.254")
		}
		return nil
	})
	via := "http://us:pw@" + p.Listener.Addr().String()
	f := fetcher(t, Settings{Guard: "private", Proxy: via, Unguarded: "exempt.test"}, resolver)
	for _, u := range []string{"http://site.test/", "http://exempt.test/"} { // the latter is unknown here
		if doc, err := f.Get(t.Context(), parse(t, u)); err != nil || string(doc.Body) != "hello" {
			t.Errorf("%s: %v", u, err)
		}
	}
	if got := strings.Join(asked(), ","); got != "GET http://site.test/ Basic dXM6cHc=,GET http://exempt.test/ Basic dXM6cHc=" {
		t.Errorf("the proxy was asked %s", got)
	}
	n := len(asked())
	for _, u := range []string{"http://inside.test/", "https://inside.test/", "http://imds.test/", "http://127.0.0.1/", "http://0x7f.1/", "http://169.254.169.254/", "http://metadata.google.internal/", "http://[::1]/"} {
		_, err := f.Get(t.Context(), parse(t, u))
		fails(t, u, err, fault.HTTPRequestFailed, "CONDUIT_URL_GUARD=private")
	}
	_, err := f.Get(t.Context(), parse(t, "http://unknown.test/"))
	fails(t, "unknown name", err, fault.HTTPRequestFailed, "does not exist")
	if len(asked()) != n {
		t.Errorf("the proxy was asked %s", asked()[n:])
	}
	_, err = f.Get(t.Context(), parse(t, "http://site.test/redirect"))
	fails(t, "redirect", err, fault.HTTPRequestFailed, "inside.test", "CONDUIT_URL_GUARD=private")
	if len(asked()) != n+1 {
		t.Errorf("the proxy was asked %s", asked()[n:])
	}
	_, err = f.Get(t.Context(), parse(t, "https://site.test/"))
	fails(t, "CONNECT refused", err, fault.HTTPRequestFailed, "CONDUIT_HTTP_PROXY", "403")

	p.Close()
	_, err = f.Get(t.Context(), parse(t, "http://site.test/"))
	fails(t, "proxy gone", err, fault.HTTPRequestFailed, "proxy of CONDUIT_HTTP_PROXY")
	if strings.Contains(err.Error(), "pw") {
		t.Errorf("message holds the password: %v", err)
	}
}

func TestProxyTunnel(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer s.Close()
	var tunnels sync.WaitGroup
	defer tunnels.Wait()
	p, asked := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		w.WriteHeader(http.StatusOK)
		from, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		tunnels.Go(func() { io.Copy(to, rest); to.Close() })
		io.Copy(from, to)
	})
	f := fetcher(t, Settings{Guard: "private", Proxy: p.URL}, names(t, func(string) []netip.Addr { return addrs("8.8.8.8") }))
	f.client.Transport.(*transport).base.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	if doc, err := f.Get(t.Context(), parse(t, "https://example.com/")); err != nil || string(doc.Body) != "hello" {
		t.Errorf("through a tunnel: %v", err)
	}
	if got := asked(); len(got) != 1 || !strings.HasPrefix(got[0], "CONNECT example.com:443") {
		t.Errorf("the proxy was asked %s", got)
	}
	f.client.CloseIdleConnections()
}

func TestConfiguration(t *testing.T) {
	good := Settings{Timeout: time.Second, Guard: "off"}
	for variable, change := range map[string]func(*Settings){
		"CONDUIT_HTTP_TIMEOUT_MS": func(s *Settings) { s.Timeout = 0 },
		"CONDUIT_URL_GUARD":       func(s *Settings) { s.Guard = "none" },
		"CONDUIT_UNGUARDED_HOSTS": func(s *Settings) { s.Unguarded = "http://a" },
		"CONDUIT_ALLOWED_HOSTS":   func(s *Settings) { s.Allowed = "a/b" },
	} {
		s := good
		change(&s)
		_, err := NewClient(s)
		fails(t, variable, err, fault.ConfigInvalid, variable)
	}
	for _, bad := range []string{"socks5://h:1", "h:1", "http://", "http://:80", "http://h:1/path", "http://h:1/?q", "http://secret:pw@h:x"} {
		s := good
		s.Proxy = bad
		_, err := NewClient(s)
		fails(t, bad, err, fault.ConfigInvalid, "CONDUIT_HTTP_PROXY")
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("message holds the password: %v", err)
		}
	}
	c, err := NewClient(good)
	if err != nil || c.Timeout != time.Second {
		t.Errorf("NewClient = %v, %v", c, err)
	}
}

// raw answers every connection with f, after the header of a request was read.
func raw(t testing.TB, f func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			serving.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					f(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return "http://" + l.Addr().String() + "/"
}
