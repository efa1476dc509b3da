package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/apiserver/app"
)

const dashboards = files + " --dashboards-address=:8444 --dashboards-url=https://h:8444 --page-url=https://H:443/"

func TestDashboardFlags_BecomeAConfig(t *testing.T) {
	want := app.Dashboards{
		Address: ":8444", URL: &url.URL{Scheme: "https", Host: "h:8444", Path: "/"}, PageURL: &url.URL{Scheme: "https", Host: "h", Path: "/"}, MaxUpload: 1 << 30, Drain: 10 * time.Minute,
	}
	below := want
	below.Wildcard, below.MaxUpload, below.Drain = "ray.example.com:8444", 5_000_000, 0
	for args, want := range map[string]app.Dashboards{
		files:      {},
		dashboards: want,
		dashboards + " --dashboards-wildcard=Ray.example.com:8444 --dashboards-max-upload=5M --dashboards-drain=0s": below,
	} {
		got, err := parse(t, strings.Fields(args)...).config("h", "1")
		if diff := cmp.Diff(want, got.Dashboards); err != nil || diff != "" {
			t.Errorf("%s: %v %s", args, err, diff)
		}
	}
}

func TestDashboardFlags_RefuseWhatIsBad(t *testing.T) {
	for _, args := range []string{
		"--dashboards-address=here", "--dashboards-url=http://h:8444", "--dashboards-url=", "--page-url=", "--page-url=https://a:b@h", "--page-url=https://h/x",
		"--dashboards-url=https://h", "--dashboards-wildcard=x/y", "--dashboards-wildcard=a@b", "--dashboards-max-upload=0", "--dashboards-max-upload=many", "--dashboards-drain=-1s",
	} {
		if cfg, err := parse(t, strings.Fields(dashboards+" "+args)...).config("h", "1"); err == nil || !strings.Contains(err.Error(), "read --") {
			t.Errorf("%q is taken as %+v, %v", args, cfg.Dashboards, err)
		}
	}
}
