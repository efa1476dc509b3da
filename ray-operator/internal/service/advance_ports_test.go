package service

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// secured is serveConfig with proxies that speak HTTPS only.
func secured(path string) runtime.RawExtension {
	return runtime.RawExtension{Raw: []byte(strings.TrimSuffix(string(serveConfig(path).Raw), "}") + `,"http_options":{"ssl_certfile":"/c","ssl_keyfile":"/k"}}`)}
}

func TestParts_IsWhatOneServiceCannotLeadTo(t *testing.T) {
	port := func(edit func(*serveconfig.Config)) Revision {
		r := Revision{Config: serveconfig.Config{HTTPPort: 8000, GRPCPort: 9000}}
		edit(&r.Config)
		return r
	}
	plain := port(func(*serveconfig.Config) {})
	for name, c := range map[string]struct {
		target Revision
		want   string
	}{
		"the same":          {plain, ""},
		"another HTTP port": {port(func(c *serveconfig.Config) { c.HTTPPort = 8001 }), "the ports"},
		"gRPC that comes":   {port(func(c *serveconfig.Config) { c.GRPC = true }), ""},
		"HTTPS":             {port(func(c *serveconfig.Config) { c.HTTPS = true }), "http_options.ssl_certfile"},
	} {
		for way, got := range map[string]string{"there": whyApart(plain, c.target), "back": whyApart(c.target, plain)} {
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, %s: %q, want %q", name, way, got, c.want)
			}
		}
	}
	grpc := func(number int32) Revision {
		return port(func(c *serveconfig.Config) { c.GRPC, c.GRPCPort = true, number })
	}
	if why := whyApart(grpc(9000), grpc(9001)); why == "" {
		t.Error("another gRPC port is followed")
	}
}

// TestService_NeverMixesHTTPSWithHTTP: proxies of the one never stand beside those of the other, and each is asked in
// its own protocol.
func TestService_NeverMixesHTTPSWithHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		from, to runtime.RawExtension
		tls      bool
	}{
		"switched off": {secured("app:v1"), serveConfig("app:v1"), true},
		"switched on":  {serveConfig("app:v1"), secured("app:v1"), false},
	} {
		s := serves(t)
		s.turns(t, func(spec *v1beta1.ClusterServiceSpec) { spec.ServeConfig = c.from })
		s.service.Spec.ServeConfig = c.to
		plan := s.decide()
		if plan.Finding.Code != "InvalidSpec" || !plan.Stalled || plan.Make != nil || plan.Record != nil && plan.Record.Candidate != nil {
			t.Errorf("%s: %s; %s: %s", name, &plan, plan.Phase, plan.Finding.Text)
		}
		for _, probe := range plan.Wants[0].Probes {
			if probe.TLS != c.tls {
				t.Errorf("%s: the proxies that are there are asked %+v", name, probe)
			}
		}
		if len(plan.Wants[0].Probes) != 2 {
			t.Errorf("%s: %d proxies are asked, want 2", name, len(plan.Wants[0].Probes))
		}
	}
}

// TestService_OfHTTPSIsHealthyByItsProxies and not by Serve's list of them alone.
func TestService_OfHTTPSIsHealthyByItsProxies(t *testing.T) {
	for _, answers := range []bool{true, false} {
		s := serves(t)
		s.turns(t, func(spec *v1beta1.ClusterServiceSpec) { spec.ServeConfig = secured("app:v1") })
		cluster := s.seen.Clusters[1]
		for _, pod := range cluster.Pods {
			probe := s.proxies().probeOf(cluster, pod)
			reply := cluster.Answer.Probes[probe]
			reply.OK, reply.Times, reply.Why = answers, failing, "connection refused"
			cluster.Answer.Probes[probe] = reply
		}
		if plan := s.decide(); plan.Active.Healthy != answers {
			t.Errorf("its proxies answer: %v; healthy: %v, %s", answers, plan.Active.Healthy, plan.Finding.Text)
		}
	}
}
