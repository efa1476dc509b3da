//go:build fleetprofile

// Package main, this file, is laid over the operator's own main package by "go build
// -overlay", so that the operator that is profiled is the operator itself.
//
// In: HELIOSTAT_PROFILE, a host:port of this machine. Out: net/http/pprof there. It must
// never be part of what users run: without the build tag there is nothing here.
package main

import (
	"fmt"
	"net/http"
	_ "net/http/pprof" // what is served
	"os"
)

func init() {
	go func() {
		err := http.ListenAndServe(os.Getenv("HELIOSTAT_PROFILE"), nil)
		fmt.Fprintln(os.Stderr, "serve profiles:", err)
	}()
}
