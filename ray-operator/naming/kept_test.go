package naming_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestNamesOfOthers_AreKept looks at jobs, services and stores: another name would be another object of an upgrade.
func TestNamesOfOthers_AreKept(t *testing.T) {
	for have, want := range map[string]string{
		naming.JobCluster("fit", "u", 2):                 "fit-g3hoe",
		naming.ServiceCluster("text", "u", 12):           "text-12-giyjw",
		naming.Submission("fit", "u", 1):                 "fit-1-zqrqexzt3cr6k",
		naming.ServiceRevision("text", "abc"):            "text-abc",
		naming.ServePolicy("text"):                       "text-serve",
		naming.ServeVersion("text-12-abcde"):             "text-12-abcde-serve",
		naming.RouteLabel("text"):                        "route.heliostat.dev/text",
		naming.ServeLabel("text"):                        "serve.heliostat.dev/text",
		naming.Store("demo"):                             "demo-redis",
		naming.StorePod("demo"):                          "demo-redis-0",
		naming.StoreClaim("demo"):                        "demo-store",
		naming.StoreNote("6b0c"):                         "heliostat-store-6b0c",
		naming.StoreNamespace("6b0d"):                    "6b0d",
		naming.StorePrefix(naming.StoreNamespace("6b0")): "RAY6b0@",
		naming.StoreUser(12):                             "head-12",
		naming.AuthoritySecret("demo"):                   "demo-ca",
	} {
		if have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

func TestLabelsOfOthers_AreKept(t *testing.T) {
	for name, test := range map[string]struct{ have, want map[string]string }{
		"service": {naming.ServiceLabels("text"), map[string]string{
			"app.kubernetes.io/name": "ray-serve", "app.kubernetes.io/instance": "text", "app.kubernetes.io/managed-by": "heliostat",
			v1beta1.LabelService: "text", v1beta1.LabelCluster: "",
		}},
		"store": {naming.StoreLabels("demo"), map[string]string{
			"app.kubernetes.io/name": "redis", "app.kubernetes.io/instance": "demo", "app.kubernetes.io/managed-by": "heliostat",
			v1beta1.LabelStore: "demo",
		}},
	} {
		if !maps.Equal(test.have, test.want) {
			t.Errorf("%s: %v, want %v", name, test.have, test.want)
		}
	}
}

// TestClustersOfOthers_AreCut looks at names of clusters of jobs and services around the longest of a cluster.
func TestClustersOfOthers_AreCut(t *testing.T) {
	const short, long = "XXXXX", "XXXXXXXXXXXXX"
	job := func(name string) string { return naming.JobCluster(name, "u", 1) }
	service := func(name string) string { return naming.ServiceCluster(name, "u", 10) }
	letters := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		of         func(string) string
		name, want string
	}{
		{job, letters(44), letters(44) + "-" + short},
		{job, letters(45), letters(36) + "-" + long},
		{job, letters(35) + "-" + letters(10), letters(35) + "-" + long},
		{service, letters(41), letters(41) + "-10-" + short},
		{service, letters(42), letters(36) + "-" + long},
		{service, letters(35) + "-" + letters(10), letters(35) + "-" + long},
	} {
		have := c.of(c.name)
		at := strings.LastIndex(have, "-") + 1
		if masked := have[:at] + strings.Repeat("X", len(have)-at); masked != c.want || len(have) > naming.MaxCluster {
			t.Errorf("%s gives %s of %d, want %s", c.name, have, len(have), c.want)
		}
	}
}
