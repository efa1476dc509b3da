// Package podnet makes network namespaces in which every IPv4 address is loopback, so that
// pods that are none can have addresses that Kubernetes takes for those of pods.
//
// In: functions that listen, connect or start programs. Out: what they made, which stays in
// the namespace, from wherever it is used later. A namespace has no name and goes with the process,
// however that ends; nothing of the machine is changed. It takes root.
//
// It must never lead anywhere: there is no way in or out but sockets that this process holds.
package podnet

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Island is a network namespace. Its methods may be called at any time.
type Island struct {
	work chan func()
	gone chan struct{}
	once sync.Once
}

// New makes one. It fails without root, and without the program ip.
func New() (*Island, error) {
	i := &Island{work: make(chan func()), gone: make(chan struct{})}
	made := make(chan error)
	go i.live(made)
	if err := <-made; err != nil {
		return nil, err
	}
	return i, nil
}

// live is the one thread that is in the namespace. It is never given back, so that the runtime
// ends it with the goroutine.
func (i *Island) live(made chan<- error) {
	runtime.LockOSThread()
	err := settle()
	made <- err
	if err != nil {
		return
	}
	for {
		select {
		case do := <-i.work:
			do()
		case <-i.gone:
			return
		}
	}
}

// settle takes the thread into a namespace of its own, where every address is its own.
func settle() error {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w: it takes root", err)
	}
	for _, command := range []string{"link set lo up", "route add local default dev lo"} {
		if out, err := exec.CommandContext(context.Background(), "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s: ip is of the package iproute2", command, err, out)
		}
	}
	return nil
}

// Do calls a function whose sockets and programs are of the namespace, as far as it makes them
// itself and not by another goroutine. It fails with the function, and once the island is
// closed.
func (i *Island) Do(f func() error) error {
	done := make(chan error, 1)
	select {
	case i.work <- func() { done <- f() }:
		return <-done
	case <-i.gone:
		return fmt.Errorf("use a network namespace: %w", net.ErrClosed)
	}
}

// Listen listens at an address of the namespace. Who accepts may be anywhere.
func (i *Island) Listen(address string) (listener net.Listener, err error) {
	err = i.Do(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", address)
		return err
	})
	return listener, err
}

// dialLimit is against hanging alone: in a namespace somebody listens or nobody does.
const dialLimit = 5 * time.Second

// Dial connects to an IPv4 address and port of the namespace, one connection at a time.
func (i *Island) Dial(address string) (connection net.Conn, err error) {
	err = i.Do(func() (err error) {
		connection, err = (&net.Dialer{Timeout: dialLimit}).DialContext(context.Background(), "tcp4", address)
		return err
	})
	return connection, err
}

// Close lets the namespace go as soon as the last socket and the last program in it have.
func (i *Island) Close() { i.once.Do(func() { close(i.gone) }) }
