package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/internal/podnet"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// measureApart starts this program again where each address is loopback, so that a head can have one that Kubernetes takes
// for a pod's, and leads from there to the API server.
func measureApart(ctx context.Context) error {
	cluster, err := live.Open(ctx)
	if err != nil {
		return err
	}
	address, err := url.Parse(cluster.Config.Host)
	if err != nil {
		return fmt.Errorf("read the API server's address: %w", err)
	}
	apart, err := podnet.New()
	if err != nil {
		return err
	}
	defer apart.Close()
	listener, err := apart.Listen(address.Host)
	if err != nil {
		return fmt.Errorf("lead to the API server: %w", err)
	}
	defer func() { _ = listener.Close() }()
	go lead(listener, address.Host)
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	command := exec.CommandContext(ctx, program, append([]string{"-apart"}, os.Args[1:]...)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	if err := apart.Do(command.Start); err != nil {
		return fmt.Errorf("start this program apart: %w", err)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("measure apart: %w", err)
	}
	return nil
}

// lead passes what comes to a listener on to an address, until the listener closes.
func lead(listener net.Listener, to string) {
	for {
		inside, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = inside.Close() }()
			outside, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = outside.Close() }()
			go func() {
				_, _ = io.Copy(outside, inside)
				_ = outside.Close() // whichever breaks ends both
			}()
			_, _ = io.Copy(inside, outside)
		}()
	}
}
