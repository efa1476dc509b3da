package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func flagSet() *flag.FlagSet {
	set := flag.NewFlagSet("encryption", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

func TestFlags_BecomeSettings(t *testing.T) {
	set := flagSet()
	f := defineFront(set)
	if *f != (front{listen: ":8266", to: "localhost:8265"}) {
		t.Errorf("by default %+v", *f)
	}
	err := parse(set, []string{"--listen=127.0.0.1:1", "--to=localhost:2", "--certificates=/c"})
	if want := (front{"127.0.0.1:1", "localhost:2", "/c"}); err != nil || *f != want || f.check() != nil {
		t.Errorf("front has %+v, %v, %v", *f, err, f.check())
	}
	set = flagSet()
	c := defineCertify(set)
	err = parse(set, []string{"--authority=/a", "--out=/o", "--names=a,b"})
	if want := (certify{"/a", "/o", "a,b"}); err != nil || *c != want {
		t.Errorf("certify has %+v, %v", *c, err)
	}
}

func TestFlags_AreRefused(t *testing.T) {
	for _, bad := range []string{
		"--listen=8266", "--listen=", "--to=:8265", "--to=a", "--certificates=", "more", "--none",
	} {
		set := flagSet()
		f := defineFront(set)
		err := parse(set, []string{"--certificates=/c", bad})
		if err == nil {
			err = f.serve(t.Context(), slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), "read ") {
			t.Errorf("%s is taken as %+v, %v", bad, *f, err)
		}
	}
	for _, given := range []certify{{}, {authority: "/a"}, {out: "/o"}} {
		if err := given.run(context.Background()); err == nil || !strings.Contains(err.Error(), "are needed") {
			t.Errorf("%+v: %v", given, err)
		}
	}
	for _, args := range [][]string{nil, {"sign"}, {"--help"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
