package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/apiserver/app"
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
		Address: ":8443", CertFile: "c", KeyFile: "k", APIServer: "https://[fd00::1]:443", CAFile: authority,
		MetricsAddress: ":8080", HealthAddress: ":8081",
	}
	outside := inPod
	outside.APIServer, outside.CAFile, outside.MetricsAddress = "https://a:6443", "ca", "0"
	for args, want := range map[string]app.Config{
		files: inPod,
		files + " --api-server=https://a:6443 --api-server-ca-file=ca --metrics-bind-address=0": outside,
	} {
		if got, err := parse(t, strings.Fields(args)...).config("fd00::1", "443"); err != nil || got != want {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
	}
}

func TestFlags_RefuseWhatIsBad(t *testing.T) {
	for _, args := range []string{
		"", "--tls-cert-file=c", files + " --api-server-ca-file=", files + " --bind-address=0", files + " --metrics-bind-address=here", files + " more",
	} {
		if cfg, err := parse(t, strings.Fields(args)...).config("h", "1"); err == nil {
			t.Errorf("%q is taken as %+v", args, cfg)
		}
	}
	if cfg, err := parse(t, strings.Fields(files)...).config("", ""); err == nil {
		t.Errorf("no API server is taken as %+v", cfg)
	}
}
