package signin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// home is where the page begins.
const home = "/ui/"

// maxAddress is how many bytes an address may have that a user is led to.
const maxAddress = 4 << 10

// Origins are where the page and what clusters serve are reached.
type Origins struct {
	// Page is that of the page and the API, such as https://heliostat.example.com.
	Page string
	// Dashboards is that of clusters; empty where they are not served.
	Dashboards string
	// Wildcard is the host, with a port other than 443, below which each cluster has an origin of its own; empty for none.
	Wildcard string
}

// ParseOrigins reads the three as an administrator writes them.
func ParseOrigins(page, dashboards, wildcard string) (Origins, error) {
	var o Origins
	var err error
	if o.Page, err = parseOrigin(page); err != nil {
		return Origins{}, fmt.Errorf("read the page's address: %w", err)
	}
	if dashboards == "" && wildcard != "" {
		return Origins{}, errors.New("read the wildcard: the dashboards have no address: give it as well")
	}
	if dashboards != "" {
		if o.Dashboards, err = parseOrigin(dashboards); err != nil {
			return Origins{}, fmt.Errorf("read the dashboards' address: %w", err)
		}
		if o.Dashboards == o.Page {
			return Origins{}, errors.New("read the dashboards' address: it is the page's, and the owner of a cluster could " +
				"act for its visitors: give it another port or host")
		}
	}
	if wildcard != "" {
		below, err := parseOrigin("https://" + strings.TrimPrefix(wildcard, "*."))
		if err != nil {
			return Origins{}, fmt.Errorf("read the wildcard: %w", err)
		}
		o.Wildcard = strings.TrimPrefix(below, "https://")
	}
	return o, nil
}

func parseOrigin(text string) (string, error) {
	read, err := url.Parse(text)
	if err != nil || read.Scheme != "https" || read.Hostname() == "" || read.User != nil || read.RawQuery != "" ||
		read.Fragment != "" || read.Path != "" && read.Path != "/" || strings.Contains(read.Host, "*") {
		return "", fmt.Errorf("%q is not https://HOST or https://HOST:PORT: write it so", text)
	}
	return "https://" + route.CleanHost(read.Host), nil
}

// isPage reports whether a Host is that of the page.
func (o Origins) isPage(host string) bool { return "https://"+route.CleanHost(host) == o.Page }

// Of returns the dashboards' origin that a Host is of: the one of all, or that of a single cluster.
func (o Origins) Of(host string) (string, bool) {
	if o.Dashboards == "" {
		return "", false
	}
	origin := "https://" + route.CleanHost(host)
	if origin == o.Dashboards {
		return origin, true
	}
	label, is := strings.CutSuffix(origin, "."+o.Wildcard)
	label = strings.TrimPrefix(label, "https://")
	isLabel := label != "" && !strings.ContainsFunc(label, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if !is || o.Wildcard == "" || !isLabel || origin == o.Page {
		return "", false
	}
	return origin, true
}

// readAddress returns the dashboards' origin of an address, and what follows it.
func (o Origins) readAddress(to string) (origin, path string, is bool) {
	read, is := parseAddress(to)
	if !is || read.Scheme != "https" || read.User != nil || read.Opaque != "" {
		return "", "", false
	}
	origin, is = o.Of(read.Host)
	if !is {
		return "", "", false
	}
	read.Scheme, read.Host = "", ""
	return origin, "/" + strings.TrimLeft(read.String(), "/"), true
}

// readGoal returns where a user goes after signing in: below the page's start, or to an address of the dashboards. It
// is the page's start where it would be anywhere else.
func (o Origins) readGoal(to string) string {
	if path, is := readPath(to); is && strings.HasPrefix(path, home) {
		return path
	}
	origin, path, is := o.readAddress(to)
	switch {
	case !is:
		return home
	case !o.isLinkable(origin, path) && !strings.HasPrefix(path, goPath+"?"):
		return origin + goTo(path) // the gate refuses a link to it from the page
	}
	return origin + path
}

// isLinkable reports whether a path at a dashboards' origin is the start of a cluster or service, to which any page may
// link. Others may have effects.
func (o Origins) isLinkable(origin, to string) bool {
	to, _, _ = strings.Cut(to, "#")
	if origin != o.Dashboards {
		path, _, _ := strings.Cut(to, "?")
		return path == "/"
	}
	target, err := route.Site{}.Read(route.Request{Method: http.MethodGet, Target: to})
	return err == nil && target.Path == "/"
}

// readPath returns a path of the same origin, with its query. Browsers read two slashes, and a backslash, as a host.
func readPath(to string) (string, bool) {
	read, is := parseAddress(to)
	if !is || read.Scheme != "" || read.Host != "" || to[0] != '/' || strings.HasPrefix(to, "//") {
		return "", false
	}
	return to, true
}

// parseAddress refuses what browsers may read in another way.
func parseAddress(to string) (*url.URL, bool) {
	isOdd := func(r rune) bool { return r <= ' ' || r == '\\' || r > unicode.MaxASCII || unicode.IsControl(r) }
	if to == "" || len(to) > maxAddress || strings.ContainsFunc(to, isOdd) {
		return nil, false
	}
	read, err := url.Parse(to)
	return read, err == nil
}
