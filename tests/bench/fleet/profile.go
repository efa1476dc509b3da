package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// profile runs the operator once and keeps what Go's profilers say of it: where the
// processor time went while the fleet came up, what was allocated in all, and what is
// held at the end. Look at them with "go tool pprof -top FILE".
func (b *bench) profile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	b.chart.env = append(b.chart.env, "HELIOSTAT_PROFILE="+address)
	return b.on(ctx, Operator, func(ctx context.Context, cp *controlPlane, kubeconfig string) error {
		f := newFleet(cp, computeClusters(), Spread, b.clusters)
		if err := cp.prepare(ctx, namespaces(Spread, b.clusters)); err != nil {
			return err
		}
		c, err := b.begin(ctx, cp, kubeconfig, Operator)
		if err != nil {
			return err
		}
		if err := f.follow(ctx); err != nil {
			return err
		}
		fetch := fetcher{base: "http://" + address + "/debug/pprof/", dir: dir}
		if err := fetch.save(ctx, "allocs", "allocs-before"); err != nil {
			return err
		}
		// For longer than the fleet takes: at least 5 s, 100 ms for each cluster.
		seconds := 5 + b.clusters/10
		taken := make(chan error, 1)
		go func() { taken <- fetch.save(ctx, fmt.Sprintf("profile?seconds=%d", seconds), "cpu") }()
		s := Sample{Contender: Operator, Layout: Spread, Clusters: b.clusters}
		if err := s.fill(ctx, f, c); err != nil {
			return err
		}
		if s.Memory, err = c.memory(); err != nil {
			return err
		}
		fmt.Printf("under profilers, in a profile of %d s: %s\n", seconds, s.line())
		for _, err := range []error{<-taken, fetch.save(ctx, "allocs", "allocs"), fetch.save(ctx, "heap?gc=1", "heap"), c.stop(syscall.SIGTERM)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fetcher keeps profiles that a program serves.
type fetcher struct{ base, dir string }

func (f fetcher) save(ctx context.Context, what, name string) error {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+what, nil)
	if err != nil {
		return fmt.Errorf("build a request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("fetch the profile %s: %w", name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	path := filepath.Join(f.dir, name+".pb.gz")
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep the profile %s: %w", name, err)
	}
	if _, err := io.Copy(file, answer.Body); err != nil {
		return fmt.Errorf("keep the profile %s: %w", name, err)
	}
	fmt.Println("go tool pprof -top", path)
	return file.Close()
}
