package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// inside runs this program again with the same arguments in a network namespace of its own, in which every address is
// loopback: pods of layout Mixed have addresses there that Kubernetes takes for those of pods, with heads behind them.
func inside(ctx context.Context) error {
	again := exec.CommandContext(ctx, "/proc/self/exe", append(os.Args[1:], "-inside")...)
	again.Cancel = func() error { return again.Process.Signal(syscall.SIGTERM) }
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	err := again.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return errors.New("the run failed")
	}
	if err != nil {
		return fmt.Errorf("make a network namespace: %w: layout %s takes root; the others do without: LAYOUTS=%s,%s", err, Mixed, Spread, One)
	}
	return nil
}

// settle makes every address of the namespace loopback.
func settle(ctx context.Context) error {
	for _, command := range []string{"link set lo up", "route add local default dev lo"} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s: ip is of the package iproute2", command, err, out)
		}
	}
	return nil
}
