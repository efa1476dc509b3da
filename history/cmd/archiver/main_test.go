package main

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/history/archiver"
)

// parse returns the Config of arguments.
func parse(arguments ...string) (archiver.Config, error) {
	set := flag.NewFlagSet("archiver", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := define(set)
	if err := set.Parse(arguments); err != nil {
		return archiver.Config{}, err
	}
	return f.complete()
}

var needed = []string{"--certificate=tls.crt", "--key=tls.key", "--authorities=ca.crt", "--namespace=heliostat"}

func TestFlags_BecomeAConfig(t *testing.T) {
	cfg, err := parse(append(slices.Clone(needed), "--listen=:1", "--metrics-listen=:2", "--spool=/s", "--spool-size=2Gi", "--claim=/c",
		"--pod=archiver-1", "--lease-name=lease", "--keep-for=2h", "--max-keep-for=3h", "--after-namespace=4h", "--limit-cluster=5Gi",
		"--limit-namespace=6Gi", "--limit-objects=7", "--pod-rate=8Mi", "--namespace-rate=0", "--watch-namespaces=a,b")...)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Now == nil || cfg.Log == nil || cfg.Memory == 0 || cfg.Grace == 0 {
		t.Errorf("the config has no clock, log, memory or grace: %+v", cfg)
	}
	cfg.Now, cfg.Log, cfg.Memory, cfg.Grace = nil, nil, 0, 0
	want := archiver.Config{
		Listen: ":1", MetricsListen: ":2", Spool: "/s", SpoolBytes: 2 << 30, Claim: "/c", Certificate: "tls.crt", Key: "tls.key",
		Authorities: "ca.crt", Namespace: "heliostat", LeaseName: "lease", Pod: "archiver-1", PodRate: 8 << 20, WatchNamespaces: []string{"a", "b"},
		Retention: archiver.Retention{
			KeepFor: 2 * time.Hour, MaxKeepFor: 3 * time.Hour, AfterNamespace: 4 * time.Hour, ClusterBytes: 5 << 30, NamespaceBytes: 6 << 30,
			NamespaceObjects: 7,
		},
	}
	if diff := cmp.Diff(want, cfg, cmp.Comparer(func(a, b func(archiver.Needs) (archiver.Records, error)) bool { return true })); diff != "" {
		t.Error(diff)
	}
}

func TestFlags_AreRefusedWithTheirNames(t *testing.T) {
	for argument, want := range map[string]string{
		"--pod-rate=fast":    "--pod-rate",
		"--pod-rate=-1":      "--pod-rate",
		"--limit-cluster=1x": "--limit-cluster",
		"--spool-size=0":     "--spool-size",
		"--namespace=":       "--namespace",
	} {
		if _, err := parse(append(slices.Clone(needed), argument)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}
