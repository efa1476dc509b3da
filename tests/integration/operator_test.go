package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// operator is a running program of ours.
type operator struct {
	t       *testing.T
	command *exec.Cmd
	metrics string
	log     lockedBuffer
	began   live.Mark
	end     sync.Once
	// env are variables beside those of the tests.
	env []string
}

// startOperator starts the operator; it is stopped, and must not have been refused
// anything, when the test ends.
func startOperator(t *testing.T, flags ...string) *operator {
	t.Helper()
	return (&operator{t: t}).begin(flags...)
}

// begin starts the program. It is stopped, and must not have been refused anything, when the test ends.
func (o *operator) begin(flags ...string) *operator {
	t := o.t
	t.Helper()
	o.metrics, o.began = freeAddress(t), shared.audit.now(t)
	flags = append([]string{"--kubeconfig=" + shared.kubeconfig, "--metrics-bind-address=" + o.metrics, "--health-probe-bind-address=0"}, flags...)
	must(t, o.start(flags))
	t.Cleanup(func() {
		o.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the operator's log:\n%s", o.log.String())
		}
		for _, why := range shared.audit.refused(t, o.began) {
			t.Error(why)
		}
	})
	return o
}

// start starts the program in a process group of its own: in that of a run in the
// background, whose shell may end at any time, the kernel would then tell one that a test
// has paused to go on. It ends with the tests, however these end. Heads and servers of tests are at loopback addresses.
func (o *operator) start(flags []string) error {
	o.command = exec.Command(shared.program, append(flags, "--allow-local-addresses")...)
	o.command.Stderr = &o.log
	o.command.Env = append(os.Environ(), o.env...)
	o.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := o.command.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	return nil
}

// stop ends the program by a signal and waits until it has gone.
func (o *operator) stop(signal syscall.Signal) {
	o.end.Do(func() {
		if err := o.command.Process.Signal(signal); err != nil {
			o.t.Errorf("stop the operator: %v: it had ended by itself:\n%s", err, o.log.String())
		}
		_ = o.command.Wait() // how it ends by a signal is not judged
	})
}

// operators counts the addresses that were given to operators.
var operators atomic.Int32

// freeAddress gives an address of loopback that no other operator has. No outgoing connection takes its port meanwhile:
// those leave from 127.0.0.1.
func freeAddress(t *testing.T) string {
	t.Helper()
	number := operators.Add(1)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.200.%d.%d:0", number/250, number%250+1))
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// activity is what the operator's metrics say of its work.
type activity struct {
	// passes since it started; waiting are clusters to be looked at, now or in a moment.
	passes, waiting float64
}

// activity reads the metrics.
func (o *operator) activity(ctx context.Context) (activity, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.metrics+"/metrics", nil)
	if err != nil {
		return activity{}, fmt.Errorf("build a request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return activity{}, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var a activity
	for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
		name, value, _ := strings.Cut(scanner.Text(), " ")
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "controller_runtime_reconcile_total{"):
			a.passes += number
		case strings.HasPrefix(name, "controller_runtime_active_workers{"), strings.HasPrefix(name, "workqueue_depth{"):
			a.waiting += number
		}
	}
	return a, nil
}

// quiet waits until nothing has been done for a while, and gives the number of passes.
func (o *operator) quiet() float64 {
	o.t.Helper()
	last, since := activity{passes: -1}, time.Now()
	must(o.t, live.Until(o.t.Context(), limit, "the operator to have nothing to do", func(ctx context.Context) error {
		seen, err := o.activity(ctx)
		if err != nil {
			return err
		}
		if seen != last || seen.waiting > 0 {
			last, since = seen, time.Now()
		}
		if calm := time.Since(since); calm < time.Second {
			return fmt.Errorf("%v passes, %v clusters waiting, calm for %v", seen.passes, seen.waiting, calm)
		}
		return nil
	}))
	return last.passes
}

// passed waits until the operator has made as many passes in all.
func (o *operator) passed(passes float64) {
	o.t.Helper()
	must(o.t, live.Until(o.t.Context(), limit, fmt.Sprintf("%v passes", passes), func(ctx context.Context) error {
		seen, err := o.activity(ctx)
		if err == nil && seen.passes < passes {
			err = fmt.Errorf("%v passes", seen.passes)
		}
		return err
	}))
}

// lockedBuffer is written by the program while the test may read it.
type lockedBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
