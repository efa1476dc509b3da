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

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// profile runs the operator once and keeps profiles of it: processor time while the fleet comes up, allocations in all, and
// the heap at the end. It also keeps the API server's processor time. Read them with "go tool pprof -top FILE".
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
		administrator, err := rest.HTTPClientFor(cp.Config)
		if err != nil {
			return fmt.Errorf("make a client of the API server: %w", err)
		}
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
		fetch := fetcher{client: http.DefaultClient, base: "http://" + address + "/debug/pprof/", dir: dir}
		fetchServer := fetcher{client: administrator, base: cp.Config.Host + "/debug/pprof/", dir: dir}
		if err := fetch.save(ctx, "allocs", "allocs-before"); err != nil {
			return err
		}
		// For longer than the fleet takes: at least 5 s, 100 ms for each cluster.
		seconds := 5 + b.clusters/10
		profiles, profiled := errgroup.WithContext(ctx)
		for name, from := range map[string]fetcher{"cpu": fetch, "api-server-cpu": fetchServer} {
			profiles.Go(func() error { return from.save(profiled, fmt.Sprintf("profile?seconds=%d", seconds), name) })
		}
		s := Sample{Contender: Operator, Layout: Spread, Clusters: b.clusters}
		if err := s.fill(ctx, f, c); err != nil {
			return err
		}
		if s.Memory, err = c.memory(); err != nil {
			return err
		}
		fmt.Printf("under profilers, in a profile of %d s: %s\n", seconds, s.line())
		for _, err := range []error{profiles.Wait(), fetch.save(ctx, "allocs", "allocs"), fetch.save(ctx, "heap?gc=1", "heap"), c.stop(syscall.SIGTERM)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fetcher keeps profiles that a program serves.
type fetcher struct {
	client    *http.Client
	base, dir string
}

func (f fetcher) save(ctx context.Context, what, name string) error {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+what, nil)
	if err != nil {
		return fmt.Errorf("build a request: %w", err)
	}
	answer, err := f.client.Do(request)
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
