package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Fate is what became of a mutant.
type Fate string

const (
	// Killed was noticed by a test.
	Killed Fate = "killed"
	// TimedOut made the tests hang, which they notice too.
	TimedOut Fate = "timed out"
	// Survived was noticed by none.
	Survived Fate = "survived"
)

// Outcome is what became of all mutants of a package.
type Outcome struct {
	// Binary is the digest of the test binary that Fates, by Mutant.Key, were seen with.
	Binary  string
	Mutants []Mutant `json:"-"`
	Fates   map[string]Fate
	// Seconds of CPU that the tests took with the mutants in Fates.
	Seconds float64
}

// settings say how a package is tried.
type settings struct {
	// dir is where it is built, and where is kept what was seen.
	dir string
	// again tries only what survived with whatever binary was tried last.
	again bool
	// shortest is the least CPU time after which tests count as hanging.
	shortest time.Duration
}

// Tests hang with a mutant when they take patience times the CPU that they take without one, within settings.shortest
// and longest, or sleep for longer than asleep. Wall time alone would say of a busy machine that tests hang.
const (
	patience = 20
	longest  = time.Minute
	asleep   = 10 * time.Minute
	// memoryLimit in KiB ends a mutant that allocates for ever.
	memoryLimit = 4 << 20
)

// try builds a package's mutants and runs its tests against each that is not yet known.
func try(ctx context.Context, name string, s settings) (*Outcome, error) {
	l, compiled, err := list(ctx, name)
	if err != nil {
		return nil, err
	}
	mutants, sources, err := mutate(l, compiled)
	if err != nil {
		return nil, err
	}
	binary, err := build(ctx, l, sources, s.dir)
	if err != nil {
		return nil, err
	}
	outcome, err := recall(binary, filepath.Join(s.dir, "fates.json"), s.again)
	if err != nil {
		return nil, err
	}
	outcome.Mutants = mutants
	r := runner{binary: binary, dir: l.Dir, rapid: l.usesRapid(), limit: longest}
	plain, err := r.run(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("run the tests without a mutant: %w", err)
	}
	if plain.fate != Survived {
		return nil, fmt.Errorf("the tests without a mutant are %s:\n%s", plain.fate, plain.out)
	}
	r.limit = min(max(patience*plain.cpu, s.shortest), longest)
	return outcome, outcome.learn(ctx, r, filepath.Join(s.dir, "fates.json"))
}

// learn runs the tests against each mutant that is not yet known, one on each core, and keeps what it showed in path.
func (o *Outcome) learn(ctx context.Context, r runner, path string) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, m := range o.Mutants {
		mu.Lock()
		_, known := o.Fates[m.Key()]
		mu.Unlock()
		if known {
			continue
		}
		group.Go(func() error {
			one, err := r.run(ctx, m.ID)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			o.Fates[m.Key()] = one.fate
			o.Seconds += one.cpu.Seconds()
			return o.keep(path)
		})
	}
	return group.Wait()
}

// recall reads what is known of a binary, or of an earlier one what it noticed.
func recall(binary, path string, again bool) (*Outcome, error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the test binary: %w", err)
	}
	now := &Outcome{Binary: fmt.Sprintf("%x", sha256.Sum256(text)), Fates: map[string]Fate{}}
	kept, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return now, nil
	}
	var before Outcome
	if err == nil {
		err = json.Unmarshal(kept, &before)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of the mutants: %w: remove it to start afresh", err)
	}
	if before.Binary == now.Binary {
		now.Seconds = before.Seconds
	}
	for key, fate := range before.Fates {
		if before.Binary == now.Binary || again && fate != Survived {
			now.Fates[key] = fate
		}
	}
	return now, nil
}

func (o *Outcome) keep(path string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("keep what is known of the mutants: %w", err)
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return fmt.Errorf("keep what is known of the mutants: %w", err)
	}
	return os.Rename(path+".new", path)
}

// runner runs a test binary.
type runner struct {
	binary, dir string
	rapid       bool
	// limit is how much CPU time the tests may take.
	limit time.Duration
}

// ran is what one run showed.
type ran struct {
	fate Fate
	out  string
	cpu  time.Duration
}

// run runs the tests with one mutant, or with none for 0. Drawn tests draw the same each
// time: a mutant must not be killed by luck.
func (r runner) run(ctx context.Context, mutant int) (ran, error) {
	limited, cancel := context.WithTimeout(ctx, asleep)
	defer cancel()
	limits := fmt.Sprintf(`ulimit -v %d && ulimit -t %d && exec "$0" "$@"`, memoryLimit, int(math.Ceil(r.limit.Seconds())))
	args := []string{"-c", limits, r.binary, "-test.failfast", "-test.short"}
	if r.rapid {
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	command := exec.CommandContext(limited, "bash", args...)
	command.Dir = r.dir
	command.Env = append(os.Environ(), chosen+"="+strconv.Itoa(mutant))
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ran{}, fmt.Errorf("stopped: %w", ctx.Err())
	case err != nil && !errors.As(err, &failed):
		return ran{}, fmt.Errorf("run the test binary: %w", err)
	}
	state := command.ProcessState
	one := ran{fate: Killed, out: string(out), cpu: state.UserTime() + state.SystemTime()}
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case limited.Err() != nil || status.Signal() == syscall.SIGKILL: // the kernel's answer to too much CPU time
		one.fate = TimedOut
	case err == nil:
		one.fate = Survived
	}
	return one, nil
}

// flat is a package's path as the name of a directory.
func flat(name string) string { return strings.ReplaceAll(name, "/", "_") }
