package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	// Seconds that the tests took with the mutants in Fates.
	Seconds float64
}

// settings say how a package is tried.
type settings struct {
	// dir is where it is built, and where is kept what was seen.
	dir string
	// again tries only what survived with whatever binary was tried last.
	again bool
	// shortest is the least time after which tests count as hanging.
	shortest time.Duration
}

// Tests hang with a mutant when they take so many times what they take without one, within
// settings.shortest and longest: the machine may be busy.
const (
	patience = 20
	longest  = time.Minute
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
	began := time.Now()
	if fate, out, err := r.run(ctx, 0); err != nil || fate != Survived {
		return nil, fmt.Errorf("run the tests without a mutant: %s, %w\n%s", fate, err, out)
	}
	r.limit = min(max(patience*time.Since(began), s.shortest), longest)
	for _, m := range mutants {
		if _, known := outcome.Fates[m.Key()]; known {
			continue
		}
		began := time.Now()
		fate, _, err := r.run(ctx, m.ID)
		if err != nil {
			return nil, err
		}
		outcome.Fates[m.Key()] = fate
		outcome.Seconds += time.Since(began).Seconds()
		if err := outcome.keep(filepath.Join(s.dir, "fates.json")); err != nil {
			return nil, err
		}
	}
	return outcome, nil
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
	limit       time.Duration
}

// run runs the tests with one mutant, or with none for 0. Drawn tests draw the same each
// time: a mutant must not be killed by luck.
func (r runner) run(ctx context.Context, mutant int) (Fate, string, error) {
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	args := []string{"-c", "ulimit -v " + strconv.Itoa(memoryLimit) + ` && exec "$0" "$@"`, r.binary, "-test.failfast", "-test.short"}
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
		return "", "", fmt.Errorf("stopped: %w", ctx.Err())
	case limited.Err() != nil:
		return TimedOut, string(out), nil
	case err == nil:
		return Survived, string(out), nil
	case errors.As(err, &failed):
		return Killed, string(out), nil
	}
	return "", "", fmt.Errorf("run the test binary: %w", err)
}

// flat is a package's path as the name of a directory.
func flat(name string) string { return strings.ReplaceAll(name, "/", "_") }
