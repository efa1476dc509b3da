package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Sample is what one contender showed on a Kubernetes of its own.
type Sample struct {
	Contender string `json:"contender"`
	Layout    string `json:"layout"`
	Round     int    `json:"round"`
	Clusters  int    `json:"clusters"`
	Times     Times  `json:"times"`
	// CPU is the processor time, in ms per cluster, that the contender used from the first
	// creation until it was calm again; ServerCPU is the API server's.
	CPU       float64 `json:"cpu"`
	ServerCPU float64 `json:"serverCPU"`
	// Calls are those of the whole fleet in that time.
	Calls Calls `json:"calls"`
	// Passes is how often an operator looked at each cluster in that time, on average.
	Passes float64 `json:"passes,omitempty"`
	// Later are the calls of the whole fleet in the time after that, until it has been ready
	// for a while; Memory is in MiB, and then. Layout One ends before.
	Later  Calls              `json:"later"`
	Memory live.ProcessMemory `json:"memory"`
	// Growth are the calls for one more worker in each of Grown clusters.
	Growth Calls `json:"growth"`
	Grown  int   `json:"grown,omitempty"`
	// Restart is absent where the contender is not restarted.
	Restart *Restart `json:"restart,omitempty"`
}

// Restart is what a contender did that was started again over a fleet that was ready.
type Restart struct {
	// Seconds from its start until it had looked at every cluster and was calm.
	Seconds float64            `json:"seconds"`
	Calls   Calls              `json:"calls"`
	Memory  live.ProcessMemory `json:"memory"`
	// CPU is in ms per cluster.
	CPU float64 `json:"cpu"`
}

// bench is what all runs share.
type bench struct {
	clusters int
	// settle is how long a fleet is left alone once it is ready.
	settle time.Duration
	chart  chart
	// kubernetes is the directory of Kubernetes' programs; built is that of ours.
	kubernetes, built string
	// mould is the file that the floor reads.
	mould string
	// scratch is where etcd and logs go, in memory where the machine offers that.
	scratch string
}

// on runs an act on a fresh control plane with kubelets and the chart, and takes all of it
// down again.
func (b *bench) on(ctx context.Context, act func(context.Context, *controlPlane, string) error) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	dir, err := os.MkdirTemp(b.scratch, "heliostat-fleet-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cp, err := up(ctx, b.kubernetes, dir, fail)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer func() { err = errors.Join(err, cp.down()) }()
	kubelet, err := start(program{name: "kubelet", path: filepath.Join(b.built, "kubelet"), args: []string{"--kubeconfig=" + cp.kubeconfig}}, dir, fail)
	if err != nil {
		return err
	}
	cp.children = append(cp.children, kubelet)
	kubeconfig, err := cp.install(ctx, b.chart)
	if err == nil {
		err = cp.prepare(ctx, []string{mouldNamespace})
	}
	if err == nil {
		err = act(ctx, cp, kubeconfig)
	}
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// begin starts a contender and waits until it has made one cluster and is calm.
func (b *bench) begin(ctx context.Context, cp *controlPlane, kubeconfig, name string) (c *contender, err error) {
	p := program{name: name, path: filepath.Join(b.built, name)}
	if name == Floor {
		p.args = []string{"--objects=" + b.mould}
		c, err = cp.startFloor(b.chart, p, kubeconfig)
	} else {
		c, err = cp.startOperator(b.chart, p, kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	return c, cp.first(ctx, c)
}

// first has the contender make the first cluster, which is not counted.
func (cp *controlPlane) first(ctx context.Context, c *contender) error {
	name := types.NamespacedName{Namespace: mouldNamespace, Name: mouldName}
	if err := cp.Create(ctx, newCluster(name)); err != nil {
		return fmt.Errorf("create ComputeCluster %s: %w", name, err)
	}
	_, err := cp.UntilReady(ctx, name, time.Minute)
	if err == nil {
		_, err = c.untilCalm(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: the log of %s ends with:\n%s", err, c.name, c.tail())
	}
	return nil
}

// cast has the operator make one cluster, and keeps what it made for the floor.
func (b *bench) cast(ctx context.Context) error {
	return b.on(ctx, func(ctx context.Context, cp *controlPlane, kubeconfig string) error {
		c, err := b.begin(ctx, cp, kubeconfig, Operator)
		if err != nil {
			return err
		}
		m, err := cp.takeMould(ctx)
		if err != nil {
			return err
		}
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(b.mould, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("keep what the operator made: %w", err)
		}
		return c.stop(syscall.SIGTERM)
	})
}

// grown is how many clusters get one more worker.
const grown = 10

// measure runs one contender.
func (b *bench) measure(ctx context.Context, name, layout string) (Sample, error) {
	s := Sample{Contender: name, Layout: layout, Clusters: b.clusters}
	err := b.on(ctx, func(ctx context.Context, cp *controlPlane, kubeconfig string) error {
		f := newFleet(cp, layout, b.clusters)
		if err := cp.prepare(ctx, namespaces(layout, b.clusters)); err != nil {
			return err
		}
		c, err := b.begin(ctx, cp, kubeconfig, name)
		if err != nil {
			return err
		}
		if err := f.follow(ctx); err != nil {
			return err
		}
		if err := s.fill(ctx, f, c); err != nil {
			return fmt.Errorf("%w: the log of %s ends with:\n%s", err, c.name, c.tail())
		}
		if layout == One {
			return c.stop(syscall.SIGTERM) // all else would be as it is in the other layout
		}
		if err := s.last(ctx, f, c, b.settle); err != nil {
			return err
		}
		if err := s.grow(ctx, f, c); err != nil {
			return err
		}
		if err := c.stop(syscall.SIGTERM); err != nil || name == Floor {
			return err // the floor knows only what it made itself
		}
		return b.restart(ctx, cp, kubeconfig, &s)
	})
	return s, errors.Join(err, s.allowed())
}

// fill has the contender make the fleet.
func (s *Sample) fill(ctx context.Context, f *fleet, c *contender) error {
	before, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	if err := f.create(ctx); err != nil {
		return err
	}
	if err := f.untilReady(ctx, f.names, 1); err != nil {
		return err
	}
	s.Times = f.times()
	if _, err := c.untilCalm(ctx); err != nil {
		return err
	}
	now, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	s.CPU, s.ServerCPU = ms(now.cpu-before.cpu)/float64(s.Clusters), ms(now.server-before.server)/float64(s.Clusters)
	s.Passes = (now.passes - before.passes) / float64(s.Clusters)
	s.Calls, err = f.audit.since(before.log)
	return err
}

// last leaves the fleet alone for a while: some of what an operator does is due only once
// a cluster has been at work for some time.
func (s *Sample) last(ctx context.Context, f *fleet, c *contender, settle time.Duration) error {
	from, err := f.audit.Now()
	if err != nil {
		return err
	}
	begin := time.Now()
	err = live.Until(ctx, limit, "the fleet to settle", func(context.Context) error {
		if spent := time.Since(begin); spent < settle {
			return fmt.Errorf("%v have passed", spent)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := c.untilCalm(ctx); err != nil {
		return err
	}
	if s.Later, err = f.audit.since(from); err != nil {
		return err
	}
	s.Memory, err = c.memory()
	return err
}

// grow gives some clusters of the fleet one more worker.
func (s *Sample) grow(ctx context.Context, f *fleet, c *contender) error {
	from, err := f.audit.Now()
	if err != nil {
		return err
	}
	s.Grown = min(grown, s.Clusters)
	if err := f.grow(ctx, f.names[:s.Grown]); err != nil {
		return err
	}
	if _, err := c.untilCalm(ctx); err != nil {
		return err
	}
	s.Growth, err = f.audit.since(from)
	return err
}

// restart starts the operator again over the fleet.
func (b *bench) restart(ctx context.Context, cp *controlPlane, kubeconfig string, s *Sample) error {
	from, err := cp.audit.Now()
	if err != nil {
		return err
	}
	begin := time.Now()
	c, err := cp.startOperator(b.chart, program{name: Operator, path: filepath.Join(b.built, Operator)}, kubeconfig)
	if err != nil {
		return err
	}
	if err := c.untilPassed(ctx, b.clusters); err != nil {
		return err
	}
	passed := time.Now()
	since, err := c.untilCalm(ctx)
	if err != nil {
		return err
	}
	if since.Before(passed) {
		since = passed
	}
	r := &Restart{Seconds: since.Sub(begin).Seconds()}
	used, err := c.cpu()
	if err != nil {
		return err
	}
	r.CPU = ms(used) / float64(b.clusters)
	if r.Memory, err = c.memory(); err != nil {
		return err
	}
	if r.Calls, err = cp.audit.since(from); err != nil {
		return err
	}
	s.Restart = r
	return c.stop(syscall.SIGTERM)
}

// reading is what was used up to a moment.
type reading struct {
	log         live.Mark
	cpu, server time.Duration
	passes      float64
}

func read(ctx context.Context, cp *controlPlane, c *contender) (r reading, err error) {
	if r.log, err = cp.audit.Now(); err != nil {
		return r, err
	}
	if r.cpu, err = c.cpu(); err != nil {
		return r, err
	}
	if c.metrics != "" {
		if r.passes, _, err = c.passes(ctx); err != nil {
			return r, err
		}
	}
	r.server, err = cp.apiServer.cpu()
	return r, err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// allowed tells of requests that the chart's rights do not cover.
func (s *Sample) allowed() error {
	for what := range s.Calls.Failed {
		if strings.HasSuffix(what, ": 403") {
			return fmt.Errorf("the chart's role does not let the operator %s", what)
		}
	}
	return nil
}
