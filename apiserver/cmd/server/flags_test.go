package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/apiserver/app"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/web"
	"github.com/heliostat-dev/heliostat/portal/access"
)

func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	set := flag.NewFlagSet("server", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := define(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

const files = "--tls-cert-file=c --tls-private-key-file=k"

func TestFlags_BecomeAConfig(t *testing.T) {
	inPod := app.Config{
		Address: ":8443", GRPCAddress: ":9443", CertFile: "c", KeyFile: "k", APIServer: "https://[fd00::1]:443", CAFile: authority, TokenFile: token,
		MetricsAddress: ":8080", HealthAddress: ":8081", OutputDirectory: os.TempDir(), Identity: access.Identity{Mode: access.PassThrough},
	}
	outside := inPod
	outside.APIServer, outside.CAFile, outside.TokenFile, outside.MetricsAddress, outside.GRPCAddress = "https://a:6443", "ca", "t", "0", "0"
	some := inPod
	some.Namespaces, some.Namespace = []string{"a", "b"}, "here"
	framed := inPod
	framed.Page = web.Settings{Directory: "d", FrameAncestors: []string{"https://a", "https://b"}}
	impersonating := inPod
	impersonating.Identity = access.Identity{Mode: access.Impersonate, Audience: "heliostat"}
	file := filepath.Join(t.TempDir(), "identity.yaml")
	if err := os.WriteFile(file, []byte("{mode: Impersonate, audience: heliostat}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]app.Config{
		files: inPod,
		files + " --api-server=https://a:6443 --api-server-ca-file=ca --account-token-file=t --metrics-bind-address=0 --grpc-address=0": outside,
		files + " --watch-namespaces=a,b,a --namespace=here":                                                                            some,
		files + " --web-dir=d --frame-ancestors=https://a,https://b":                                                                    framed,
		files + " --identity-file=" + file:                                                                                              impersonating,
	} {
		got, err := parse(t, strings.Fields(args)...).config("fd00::1", "443")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", args, err, diff)
		}
	}
}

func TestFlags_RefuseWhatIsBad(t *testing.T) {
	for _, args := range []string{
		"", "--tls-cert-file=c", files + " --api-server-ca-file=", files + " --bind-address=0", files + " --metrics-bind-address=here", files + " more",
		files + " --grpc-address=here", files + " --account-token-file=", files + " --watch-namespaces=A", files + " --watch-namespaces=,", files + " --identity-file=/none",
	} {
		if cfg, err := parse(t, strings.Fields(args)...).config("h", "1"); err == nil {
			t.Errorf("%q is taken as %+v", args, cfg)
		}
	}
	if cfg, err := parse(t, strings.Fields(files)...).config("", ""); err == nil {
		t.Errorf("no API server is taken as %+v", cfg)
	}
}
