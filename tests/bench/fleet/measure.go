package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Idle is what was asked for at rest. It is absent in layout One.
	Idle *Idle `json:"idle,omitempty"`
	// Restart is absent where the contender is not restarted.
	Restart *Restart `json:"restart,omitempty"`
	// Deletion is of the whole fleet at once. It is absent in layout One.
	Deletion *Deletion `json:"deletion,omitempty"`
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
	// idle is how long a fleet at rest is watched.
	idle  time.Duration
	chart chart
	// other is an operator that is not ours, nil where none is measured.
	other *other
	// heads are behind head pods where it is set, and are asked all the time.
	heads bool
	// kubernetes is the directory of Kubernetes' programs; built is that of ours.
	kubernetes, built string
	// mould is the file that the floor reads.
	mould string
	// scratch is where etcd and logs go, in memory where the machine offers that.
	scratch string
}

// on runs an act on a fresh control plane with kubelets and what a contender needs, and takes all of it
// down again.
func (b *bench) on(ctx context.Context, contender string, act func(context.Context, *controlPlane, string) error) (err error) {
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
	args := []string{"--kubeconfig=" + cp.kubeconfig, fmt.Sprintf("--heads=%v", b.heads)}
	kubelet, err := start(program{name: "kubelet", path: b.program("kubelet"), args: args}, dir, fail)
	if err != nil {
		return err
	}
	cp.children = append(cp.children, kubelet)
	kubeconfig, err := b.install(ctx, cp, contender)
	if err == nil {
		err = cp.prepare(ctx, []string{mouldNamespace})
	}
	if err == nil {
		err = cp.untilChecked(ctx)
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
	if c, err = b.start(cp, kubeconfig, name); err != nil {
		return nil, err
	}
	return c, cp.first(ctx, c, b.subject(name))
}

// first has the contender make the first cluster, which is not counted.
func (cp *controlPlane) first(ctx context.Context, c *contender, of subject) error {
	cluster := of.make(types.NamespacedName{Namespace: mouldNamespace, Name: mouldName})
	if err := cp.Create(ctx, cluster); err != nil {
		return fmt.Errorf("create the first cluster: %w", err)
	}
	err := live.Until(ctx, time.Minute, "the first cluster to be ready", func(ctx context.Context) error {
		if err := cp.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if !of.ready(cluster) {
			return errors.New("it is not")
		}
		return nil
	})
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
	return b.on(ctx, Operator, func(ctx context.Context, cp *controlPlane, kubeconfig string) error {
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
	if layout == Mixed {
		s.Clusters += share(b.clusters) // those of the services
	}
	b.heads = layout == Mixed
	err := b.on(ctx, name, func(ctx context.Context, cp *controlPlane, kubeconfig string) error {
		f := newFleet(cp, b.subject(name), layout, b.clusters)
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
		if err := s.rest(ctx, f, c, b.idle); err != nil {
			return err
		}
		if err := s.grow(ctx, f, c); err != nil {
			return err
		}
		if name != Floor { // which knows only what it made itself
			if err := c.stop(syscall.SIGTERM); err != nil {
				return err
			}
			if c, err = b.restart(ctx, cp, kubeconfig, &s); err != nil {
				return err
			}
		}
		if err := s.delete(ctx, f, c); err != nil {
			return err
		}
		return c.stop(syscall.SIGTERM)
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
	if len(f.beside) > 0 {
		if err := f.untilMixed(ctx); err != nil {
			return err
		}
	}
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
	if err := pass(ctx, settle); err != nil {
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
	if err := f.growAll(ctx, f.names[:s.Grown]); err != nil {
		return err
	}
	if _, err := c.untilCalm(ctx); err != nil {
		return err
	}
	s.Growth, err = f.audit.since(from)
	return err
}

// restart starts a contender again over the fleet, and gives it.
func (b *bench) restart(ctx context.Context, cp *controlPlane, kubeconfig string, s *Sample) (*contender, error) {
	from, err := cp.audit.Now()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	c, err := b.start(cp, kubeconfig, s.Contender)
	if err != nil {
		return nil, err
	}
	if c.metrics != "" {
		if err := c.untilPassed(ctx, s.Clusters); err != nil {
			return nil, err
		}
	}
	passed := time.Now()
	since, err := c.untilCalm(ctx)
	if err != nil {
		return nil, err
	}
	if since.Before(passed) {
		since = passed
	}
	r := &Restart{Seconds: since.Sub(begin).Seconds()}
	used, err := c.cpu()
	if err != nil {
		return nil, err
	}
	r.CPU = ms(used) / float64(s.Clusters)
	if r.Memory, err = c.memory(); err != nil {
		return nil, err
	}
	r.Calls, err = cp.audit.since(from)
	s.Restart = r
	return c, err
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
