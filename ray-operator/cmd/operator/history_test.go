package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestHistoryFlags_BecomeAConfig(t *testing.T) {
	got, err := parse(t, "--namespace=there", "--history-archivers=a.there.svc:8444,b.there.svc:8444", "--history-certificates=h", "--history-hosts=a.there.svc",
		"--history-labels=x=1", "--history-keep=Records", "--history-keep-for=2h", "--history-max-keep-for=3h", `--history-size={"memory":"64Mi"}`,
		`--history-redact=["key=[a-z]+"]`).config()
	if err != nil {
		t.Fatal(err)
	}
	want := &pod.History{
		Archivers: []string{"a.there.svc:8444", "b.there.svc:8444"}, Redact: []string{"key=[a-z]+"}, Keep: v1beta1.HistoryRecords,
		KeepFor: metav1.Duration{Duration: 2 * time.Hour}, MaxKeepFor: metav1.Duration{Duration: 3 * time.Hour}, Size: testkit.Resources("memory", "64Mi"),
	}
	if diff := cmp.Diff(want, got.Installed.History); diff != "" {
		t.Error(diff)
	}
	hosts := servercert.Hosts{Names: []string{"a.there.svc"}}
	if got.HistoryCertificates != "h" || got.ArchiverLabels["x"] != "1" || !cmp.Equal(got.HistoryHosts.Names, hosts.Names) {
		t.Errorf("it becomes %+v", got)
	}
}

func TestHistoryFlags_AreRefused(t *testing.T) {
	history := []string{"--namespace=n", "--history-archivers=a:1", "--history-certificates=h", "--history-hosts=a"}
	for _, bad := range []string{
		"--namespace=", "--history-archivers=a", "--history-certificates=", "--history-hosts=::1", "--history-labels=x", "--history-keep=All", "--history-keep-for=59m",
		"--history-max-keep-for=1h", `--history-size={"memory":"1Mi"}`, "--history-size=large", `--history-redact=["("]`, "--history-redact=x",
	} {
		if cfg, err := parse(t, append(history, bad)...).config(); err == nil {
			t.Errorf("%s is taken as %+v", bad, cfg)
		}
	}
}
