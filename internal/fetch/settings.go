package fetch

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Settings are the variables that rule URLs. A Duration is given in
// milliseconds.
type Settings struct {
	Timeout   time.Duration `env:"CONDUIT_HTTP_TIMEOUT_MS" default:"30000" min:"1" doc:"Time for one HTTP exchange, in milliseconds."`
	Disabled  bool          `env:"CONDUIT_DISABLE_URLS" default:"false" doc:"Refuse every URL."`
	Guard     string        `env:"CONDUIT_URL_GUARD" default:"metadata" oneof:"metadata private off" doc:"Addresses that URLs may not reach: metadata refuses link-local and cloud metadata addresses, private everything that is not public, off nothing."`
	Unguarded string        `env:"CONDUIT_UNGUARDED_HOSTS" default:"" doc:"Hosts exempt from CONDUIT_URL_GUARD, as host or host:port, separated by commas; *.example.org stands for every host below example.org."`
	Allowed   string        `env:"CONDUIT_ALLOWED_HOSTS" default:"" doc:"When set, the only hosts that URLs may name, written as in CONDUIT_UNGUARDED_HOSTS."`
	Proxy     string        `env:"CONDUIT_HTTP_PROXY" secret:"true" default:"" doc:"Proxy for all URLs, as http://[user:password@]host:port; proxies of the environment are ignored."`
}

const (
	maxRedirects   = 10
	maxHeaderBytes = 1 << 20
	connectTime    = 10 * time.Second
)

// NewClient returns a client under the rules of s. Whatever is asked of it, and
// wherever a server redirects it:
//
//   - only http and https URLs are requested, and only hosts that
//     CONDUIT_ALLOWED_HOSTS admits;
//   - no connection is made to an address that CONDUIT_URL_GUARD refuses. That is
//     decided on the address about to be dialled, so neither the spelling of a
//     host nor a name server that changes its mind gets round it;
//   - at most 10 redirects are followed, and the whole exchange, the body
//     included, ends after CONDUIT_HTTP_TIMEOUT_MS;
//   - no proxy is used but that of CONDUIT_HTTP_PROXY. The proxy dials the target
//     by itself, so then every address that the target's name has here is judged
//     before the proxy is asked.
//
// A refusal is ERR_HTTP_REQUEST_FAILED (ERR_HTTP_INVALID_URL for a URL of another
// scheme) and names the rule and the variable. Settings that cannot be used are
// ERR_CONFIG_INVALID.
func NewClient(s Settings) (*http.Client, error) {
	return newClient(s, net.DefaultResolver)
}

func newClient(s Settings, names *net.Resolver) (*http.Client, error) {
	if s.Timeout <= 0 {
		return nil, fault.New(fault.ConfigInvalid, "CONDUIT_HTTP_TIMEOUT_MS must be an integer of at least 1")
	}
	guard, ok := guards[s.Guard]
	if !ok {
		return nil, fault.New(fault.ConfigInvalid, "CONDUIT_URL_GUARD is %q; it must be one of metadata, private, off", s.Guard)
	}
	exempt, err := parseHosts("CONDUIT_UNGUARDED_HOSTS", s.Unguarded)
	if err != nil {
		return nil, err
	}
	allowed, err := parseHosts("CONDUIT_ALLOWED_HOSTS", s.Allowed)
	if err != nil {
		return nil, err
	}
	proxy, err := parseProxy(s.Proxy)
	if err != nil {
		return nil, err
	}
	t := &transport{
		disabled: s.Disabled,
		guard:    guard,
		exempt:   exempt,
		allowed:  allowed,
		proxied:  proxy != nil,
		dialer:   net.Dialer{Timeout: min(connectTime, s.Timeout), Resolver: names},
		names:    names,
	}
	t.base = &http.Transport{
		DialContext:            t.dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    min(connectTime, s.Timeout),
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if proxy != nil {
		t.base.Proxy = http.ProxyURL(proxy)
		t.base.OnProxyConnectResponse = proxyAnswer
	}
	return &http.Client{Transport: t, Timeout: s.Timeout, CheckRedirect: checkRedirect}, nil
}

func parseProxy(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	u, err := url.Parse(s)
	// The value may hold a password, so it is not repeated.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.ConfigInvalid, "CONDUIT_HTTP_PROXY must be written as http://host:port, https://host:port or with user:password@ before the host")
	}
	return u, nil
}

// checkRedirect ends a chain of redirects that grows too long. Where a redirect
// leads is judged by the transport, like every URL.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fault.New(fault.HTTPRequestFailed, "%s redirects more than %d times", label(via[0].URL), maxRedirects)
	}
	req.Header.Del("Referer") // the URL that led here may hold secrets
	return nil
}
