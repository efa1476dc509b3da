package packets

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wire is a node and two pods as the kernel knows them: a network namespace each, the pods' ones joined to the node's
// by a routed pair of interfaces. The namespaces have no name and go with the process, however it ends.
type wire struct {
	t                     *testing.T
	node, client, service *os.File
}

// Addresses on the wire.
const (
	nodeIP, clientIP, serviceIP = "10.89.0.11", "10.128.1.2", "10.128.1.3"
)

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{t: t}
	w.node, w.client, w.service = w.space(), w.space(), w.space()
	w.in(w.node, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	for address, pod := range map[string]*os.File{clientIP: w.client, serviceIP: w.service} {
		outside := "pod" + address[len(address)-1:]
		w.ip(w.node, "link add "+outside+" type veth peer name eth0 netns "+file(pod))
		w.ip(w.node, "addr add "+nodeIP+"/32 dev "+outside)
		w.ip(w.node, "link set "+outside+" up")
		w.ip(w.node, "route add "+address+" dev "+outside)
		w.ip(pod, "addr add "+address+"/32 dev eth0")
		w.ip(pod, "link set eth0 up")
		w.ip(pod, "route add "+nodeIP+" dev eth0")
		w.ip(pod, "route add default via "+nodeIP)
	}
	return w
}

// file is a path of a network namespace, for any process.
func file(space *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd()) }

// onThread runs a function on a thread that ends with it, so that no other goroutine finds itself elsewhere.
func onThread(act func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- act()
	}()
	return <-done
}

func (w *wire) space() (made *os.File) {
	w.t.Helper()
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w: run this test as root", err)
		}
		made, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = made.Close() })
	w.ip(made, "link set lo up")
	return made
}

// in runs a function inside a namespace; the programs that it starts are there as well.
func (w *wire) in(space *os.File, act func() error) {
	w.t.Helper()
	err := onThread(func() error {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return act()
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) ip(space *os.File, args string) {
	w.t.Helper()
	w.in(space, func() error {
		out, err := exec.CommandContext(context.Background(), "ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s: ip is of the package iproute2", args, err, out)
		}
		return nil
	})
}

// capture begins one that sees each segment three times: at both interfaces of the node, and in the pod of the service.
func (w *wire) capture() *Capture {
	w.t.Helper()
	c, err := Open(file(w.node), file(w.service))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// listen listens in the pod of the service.
func (w *wire) listen() (listener net.Listener) {
	w.t.Helper()
	w.in(w.service, func() (err error) {
		listener, err = net.Listen("tcp4", serviceIP+":0")
		return err
	})
	w.t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// dial connects from the pod of the client.
func (w *wire) dial(_ context.Context, network, address string) (connection net.Conn, err error) {
	err = onThread(func() (err error) {
		if err := unix.Setns(int(w.client.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		connection, err = net.Dial(network, address)
		return err
	})
	return connection, err
}
