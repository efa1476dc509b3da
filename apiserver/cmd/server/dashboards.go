package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/apiserver/app"
)

// dashboardFlags say where clusters and services are served.
type dashboardFlags struct {
	address, url, page, wildcard, maxUpload string
	drain                                   time.Duration
}

func (d *dashboardFlags) define(set *flag.FlagSet) {
	set.StringVar(&d.address, "dashboards-address", "0", "host:port on which dashboards and services are served, with TLS, or 0 for none")
	set.StringVar(&d.url, "dashboards-url", "", "https address at which browsers reach --dashboards-address; its origin must differ from that of --page-url")
	set.StringVar(&d.page, "page-url", "", "https address at which browsers reach the page on --bind-address")
	set.StringVar(&d.wildcard, "dashboards-wildcard", "", "host[:port] below which each cluster and service has its own name; empty for none")
	set.StringVar(&d.maxUpload, "dashboards-max-upload", "1Gi", "maximum size of a request body to a dashboard or service, such as 1Gi")
	set.DurationVar(&d.drain, "dashboards-drain", 10*time.Minute, "how long WebSockets to dashboards and services stay open when the server terminates")
}

// read checks what was given.
func (d *dashboardFlags) read() (app.Dashboards, error) {
	if d.address == "0" {
		return app.Dashboards{}, nil
	}
	if _, _, err := net.SplitHostPort(d.address); err != nil {
		return app.Dashboards{}, fmt.Errorf("read --dashboards-address: %q is not host:port", d.address)
	}
	read := app.Dashboards{Address: d.address}
	var err error
	if read.URL, err = readOrigin("--dashboards-url", d.url); err != nil {
		return read, err
	}
	if read.PageURL, err = readOrigin("--page-url", d.page); err != nil {
		return read, err
	}
	if strings.EqualFold(read.URL.Host, read.PageURL.Host) {
		return read, errors.New("read --dashboards-url: it has the origin of --page-url, where a dashboard could act for its visitor: give another host or port")
	}
	if d.wildcard != "" {
		below, err := readOrigin("--dashboards-wildcard", "https://"+d.wildcard)
		if err != nil {
			return read, err
		}
		read.Wildcard = below.Host
	}
	size, err := resource.ParseQuantity(d.maxUpload)
	if err != nil || size.Value() < 1 {
		return read, fmt.Errorf("read --dashboards-max-upload: %q is no size: give one such as 1Gi", d.maxUpload)
	}
	if d.drain < 0 {
		return read, fmt.Errorf("read --dashboards-drain: %s is less than nothing: give a duration such as 10m", d.drain)
	}
	read.MaxUpload, read.Drain = size.Value(), d.drain
	return read, nil
}

// readOrigin reads https://HOST or https://HOST:PORT. The port of HTTPS is left out, as browsers leave it out.
func readOrigin(name, text string) (*url.URL, error) {
	read, err := url.Parse(text)
	if err != nil || read.Scheme != "https" || read.Hostname() == "" || read.User != nil || read.RawQuery != "" || read.Fragment != "" || strings.Trim(read.Path, "/") != "" {
		return nil, fmt.Errorf("read %s: %q is not https://HOST or https://HOST:PORT", name, text)
	}
	read.Host, read.Path = strings.TrimSuffix(strings.ToLower(read.Host), ":443"), "/"
	return read, nil
}
