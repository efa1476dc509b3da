package podnet_test

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/podnet"
)

func open(t *testing.T) *podnet.Island {
	t.Helper()
	made, err := podnet.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// TestEveryAddressIsItsOwn, of which nobody outside knows.
func TestEveryAddressIsItsOwn(t *testing.T) {
	const address = "10.250.3.4:8000"
	here, there := open(t), open(t)
	listener, err := here.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(accepted, "hello")
			_ = accepted.Close()
		}
	}()
	connection, err := here.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(connection); err != nil || string(said) != "hello" || connection.RemoteAddr().String() != address {
		t.Errorf("%s says %q, %v", connection.RemoteAddr(), said, err)
	}
	for _, other := range []func() (net.Conn, error){
		func() (net.Conn, error) { return here.Dial("10.250.3.5:8000") },
		func() (net.Conn, error) { return there.Dial(address) },
	} {
		if _, err := other(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("somebody listens who should not: %v", err)
		}
	}
}

// TestProgramsAreThereToo, and see nothing of the machine's network.
func TestProgramsAreThereToo(t *testing.T) {
	var said []byte
	err := open(t).Do(func() (err error) {
		said, err = exec.CommandContext(t.Context(), "ip", "-o", "link").Output()
		return err
	})
	if lines := strings.Count(string(said), ": <"); err != nil || !strings.Contains(string(said), " lo:") || strings.Contains(string(said), "eth0") || lines == 0 {
		t.Errorf("a program sees %q, %v", said, err)
	}
}

func TestNothingIsDoneOnceItIsClosed(t *testing.T) {
	made := open(t)
	made.Close()
	made.Close()
	if err := made.Do(func() error { return nil }); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it gives %v", err)
	}
}
