package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/app"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	set := flag.NewFlagSet("operator", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := define(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagsBecomeAConfig(t *testing.T) {
	defaults := app.Config{MetricsAddress: ":8080", HealthAddress: ":8081", Workers: 10, Resync: 10 * time.Hour, WatchNodes: true}
	with := func(change func(*app.Config)) app.Config {
		changed := defaults
		change(&changed)
		return changed
	}
	for _, c := range []struct {
		args []string
		want app.Config
	}{
		{nil, defaults},
		{[]string{"--watch-namespaces=a, b,a", "--watch-nodes=false"}, with(func(c *app.Config) { c.Namespaces, c.WatchNodes = []string{"a", "b"}, false })},
		{[]string{"--operator-labels=x=1,y=2"}, with(func(c *app.Config) { c.Labels = map[string]string{"x": "1", "y": "2"} })},
		{[]string{"--server-labels=x=1,y=2"}, with(func(c *app.Config) { c.ServerLabels = map[string]string{"x": "1", "y": "2"} })},
		{[]string{"--server-certificate=tls", "--server-hosts=a.there.svc, ::1", "--namespace=there"}, with(func(c *app.Config) {
			c.Namespace, c.ServerCertificate = "there", "tls"
			c.ServerHosts = servercert.Hosts{Names: []string{"a.there.svc"}, Addresses: []netip.Addr{netip.IPv6Loopback()}}
		})},
		{[]string{"--autoscaler-image=o:1", "--autoscaler-pull-policy=Always"}, with(func(c *app.Config) {
			c.Image = pod.OperatorImage{Image: "o:1", PullPolicy: "Always"}
		})},
		{[]string{`--pod-defaults={"env":[{"name":"A","value":"b"}],"nodeSelector":{"pool":"ray"}}`}, with(func(c *app.Config) {
			c.Installed.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, NodeSelector: map[string]string{"pool": "ray"}}
		})},
		{[]string{"--pod-defaults={}"}, defaults},
		{[]string{`--sizes={"autoscaling":{"limits.cpu":"500m"},"managedRedis":{"memory":"1Gi"}}`}, with(func(c *app.Config) {
			c.Installed.Sizes = pod.Sizes{Autoscaling: testkit.Resources("limits.cpu", "500m"), ManagedRedis: testkit.Resources("memory", "1Gi")}
		})},
		{[]string{"--sizes={}"}, defaults},
		{[]string{"--mesh-tunnel-port=15008", "--mesh-probes-from=169.254.7.127/32, fd00::1/128"}, with(func(c *app.Config) {
			c.Mesh.TunnelPort = 15008
			c.Mesh.ProbesFrom = []netip.Prefix{netip.MustParsePrefix("169.254.7.127/32"), netip.MustParsePrefix("fd00::1/128")}
		})},
		{[]string{"--measured-clusters=50"}, with(func(c *app.Config) { c.MeasuredClusters = 50 })},
		{[]string{"--control-store-allow=10.1.2.3/8, fd00::/8", "--allow-local-addresses"}, with(func(c *app.Config) {
			c.StoreAddresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
			c.LocalAddresses = true
		})},
		{[]string{"--leader-elect", "--namespace=here"}, with(func(c *app.Config) {
			c.Namespace, c.Election = "here", &app.Election{Namespace: "here", Name: app.Name}
		})},
		{[]string{"--leader-elect", "--leader-election-namespace=there", "--leader-election-name=l"}, with(func(c *app.Config) {
			c.Election = &app.Election{Namespace: "there", Name: "l"}
		})},
	} {
		got, err := parse(t, c.args...).config()
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(app.Config{}),
			cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); err != nil || diff != "" {
			t.Errorf("%v: %v %s", c.args, err, diff)
		}
	}
}

// TestLogger_WritesAsTheFlagsSay: JSON unless text is wanted, with times that people read, and nothing beyond the verbosity.
func TestLogger_WritesAsTheFlagsSay(t *testing.T) {
	for format, wantJSON := range map[string]bool{"--v=0": true, "--log-format=json": true, "--log-format=text": false} {
		var out bytes.Buffer
		logger := parse(t, format).logger(&out)
		logger.V(1).Info("Quiet")
		logger.WithValues("cluster", "c").WithName("controller").WithValues("pass", "p").Info("Made a pod", "pod", "demo")
		var line struct{ TS, Msg, Pod, Cluster, Pass, Logger string }
		err := json.Unmarshal(out.Bytes(), &line)
		_, timeErr := time.Parse(time.RFC3339, line.TS)
		if isJSON := err == nil && timeErr == nil && line.Msg == "Made a pod" && line.Pod == "demo" && line.Cluster+line.Pass == "cp" && line.Logger == "controller"; isJSON != wantJSON {
			t.Errorf("%s: JSON is %v, want %v: %s", format, isJSON, wantJSON, out.String())
		}
		if text := out.String(); !strings.Contains(text, "Made a pod") || strings.Contains(text, "Quiet") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, bad := range [][]string{
		{"--watch-namespaces=A"}, {"--watch-namespaces=,"}, {"--operator-labels=x"}, {"--operator-labels=x=a b"}, {"--server-labels=x"},
		{"--server-labels=x=a b"}, {"--autoscaler-pull-policy=Often"}, {"--control-store-allow=10.0.0.1"},
		{"--mesh-tunnel-port=65536"}, {"--mesh-tunnel-port=-1"}, {"--mesh-probes-from=169.254.7.127"},
		{"--log-format=xml"}, {"--measured-clusters=-1"}, {"--pod-defaults=env"}, {`--pod-defaults={"enw":[]}`}, {`--pod-defaults={"env":[{"name":"RAY_ADDRESS"}]}`},
		{"--sizes=large"}, {`--sizes={"ray":{"cpu":"1"}}`}, {`--sizes={"autoscaling":{"nvidia.com/gpu":"1"}}`}, {`--sizes={"encryption":{"memory":"1Mi"}}`},
		{`--pod-defaults={"labels":{"heliostat.dev/cluster":"a"}}`}, {`--pod-defaults={"labels":{"a":"a b"}}`},
		{"--server-certificate=tls"}, {"--server-certificate=tls", "--server-hosts=a"}, {"--server-certificate=tls", "--namespace=n"}, {"--server-certificate=tls", "--namespace=n", "--server-hosts=::1"},
	} {
		if cfg, err := parse(t, bad...).config(); err == nil {
			t.Errorf("%s is taken as %+v", bad, cfg)
		}
	}
}
