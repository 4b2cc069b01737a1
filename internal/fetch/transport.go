package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A transport sends requests that the rules admit.
//
// Whether a host is exempt from the guard is a function of host and port alone.
// The connections that base keeps for reuse are filed under the same host and
// port, so one that was dialled under an exemption serves no request that is not
// exempt itself.
type transport struct {
	base     *http.Transport
	disabled bool
	guard    guard
	exempt   hosts
	allowed  hosts
	proxied  bool
	dialer   net.Dialer
	names    *net.Resolver
}

// RoundTrip checks the URL of req, which may be one that a server redirected to,
// and sends it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.check(req); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections is called by the method of [http.Client].
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

func (t *transport) check(req *http.Request) error {
	u := req.URL
	if t.disabled {
		return refuse("URLs are disabled by CONDUIT_DISABLE_URLS")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		if req.Response != nil {
			return refuse("the server redirects to a URL of the scheme %q; only http and https are followed", fault.ClipTo(u.Scheme, repeated))
		}
		return fault.New(fault.HTTPInvalidURL, "%q is not a scheme that can be read; only http and https URLs are", fault.ClipTo(u.Scheme, repeated))
	}
	if u.Hostname() == "" {
		if req.Response != nil {
			return refuse("the server redirects to a URL without a host")
		}
		return fault.New(fault.HTTPInvalidURL, "the URL names no host; write it as https://host/path")
	}
	name, port := target(u)
	if len(t.allowed) > 0 && !t.allowed.has(name, port) {
		return refuse("%s is not among the hosts of CONDUIT_ALLOWED_HOSTS", fault.ClipTo(net.JoinHostPort(name, port), repeated))
	}
	if t.guard == guardOff || t.exempt.has(name, port) {
		return nil
	}
	if why := t.guard.name(name); why != "" {
		return refuse("%s; CONDUIT_UNGUARDED_HOSTS can exempt it", why)
	}
	if addr, ok := literal(name); ok { // here, for a system without IPv6 would not get as far as dial's judgement
		return t.judge(name, addr)
	}
	if !t.proxied {
		return nil // dial judges what the name resolves to
	}
	addrs, err := t.names.LookupNetIP(req.Context(), "ip", name)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := t.judge(name, addr); err != nil {
			return err
		}
	}
	return nil
}

// dial connects to address, the host and port of a URL or of the proxy.
func (t *transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	name := canonical(host)
	if _, ok := literal(host); ok || name == "localhost" { // which "localhost." is too, though not to every resolver
		address = net.JoinHostPort(name, port)
	}
	d := t.dialer
	if !t.proxied && !t.exempt.has(name, port) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return refuse("%s has no address that %s could judge", fault.ClipTo(name, repeated), t.guard)
			}
			return t.judge(name, at.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

func (t *transport) judge(name string, addr netip.Addr) error {
	if what := t.guard.judge(addr); what != "" {
		return refuse("the address of %s is %s, which %s refuses; CONDUIT_UNGUARDED_HOSTS can exempt the host", fault.ClipTo(name, repeated), what, t.guard)
	}
	return nil
}

// proxyAnswer tells why the proxy does not connect to the target.
func proxyAnswer(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return refuse("the proxy of CONDUIT_HTTP_PROXY answered with HTTP status %s to the request for a connection", status(res.StatusCode))
}

func refuse(format string, args ...any) error {
	return fault.New(fault.HTTPRequestFailed, format, args...)
}
