package main

import (
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/sidecar"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki/pkitest"
)

func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	set := flag.NewFlagSet("autoscaler", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := define(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagsBecomeAConfig(t *testing.T) {
	for _, row := range []struct {
		given []string
		want  sidecar.Config
		level slog.Level
	}{
		{nil, sidecar.Config{GCS: "127.0.0.1:6379", Listen: ":6380", Metrics: ":44217"}, slog.LevelInfo},
		{
			[]string{"--gcs-address=head:1", "--listen=127.0.0.1:2", "--metrics-listen=:3", "--head=uid", "-v=1"},
			sidecar.Config{GCS: "head:1", Listen: "127.0.0.1:2", Metrics: ":3", Head: "uid"}, slog.LevelDebug,
		},
	} {
		f := parse(t, row.given...)
		if cfg, err := f.config(); err != nil || !reflect.DeepEqual(cfg, row.want) || f.level() != row.level {
			t.Errorf("%v: %+v, level %s, %v", row.given, cfg, f.level(), err)
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, bad := range []string{"--gcs-address=:6379", "--gcs-address=head", "--listen=6380", "--metrics-listen=", "--listen=:"} {
		if cfg, err := parse(t, bad).config(); err == nil {
			t.Errorf("%s is taken as %+v", bad, cfg)
		}
	}
}

func TestTokenIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	cfg, err := parse(t, "--token-file="+path).config()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"one\n": "one", " two \nthree": "two", "\n": "", "": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := cfg.Token(); got != want || (err == nil) != (want != "") {
			t.Errorf("of %q the token is %q, %v", text, got, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Token(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func TestCertificates_AreRead(t *testing.T) {
	now := time.Now()
	cfg, err := parse(t, "--certificates="+pkitest.Directory(t, pkitest.New(t, now), now)).config()
	if err != nil || cfg.Client == nil || cfg.Server == nil {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := parse(t, "--certificates="+t.TempDir()).config(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
}
