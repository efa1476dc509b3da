package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scratch is a worktree that faults are written into.
type scratch struct {
	tree, dir, commit string
}

// newScratch makes a worktree of the commit that a checkout is at.
func newScratch(ctx context.Context, tree string) (*scratch, error) {
	tree, err := filepath.Abs(tree)
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w", err)
	}
	commit, err := output(ctx, tree, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "seeded-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the worktree: %w", err)
	}
	s := &scratch{tree: tree, dir: dir, commit: strings.TrimSpace(commit)}
	if _, err := output(ctx, tree, "git", "worktree", "add", "--detach", "--force", dir, "HEAD"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.linkPrograms(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// linkPrograms gives the worktree the checkout's programs, but for the operator: it is built of
// what is changed.
func (s *scratch) linkPrograms() error {
	if err := os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755); err != nil {
		return fmt.Errorf("make a place for programs: %w", err)
	}
	programs, err := filepath.Glob(filepath.Join(s.tree, "bin", "*"))
	if err != nil {
		return fmt.Errorf("list the checkout's programs: %w", err)
	}
	for _, program := range programs {
		name := filepath.Base(program)
		if name == "operator" || name == "autoscaler" {
			continue
		}
		if err := os.Symlink(program, filepath.Join(s.dir, "bin", name)); err != nil {
			return fmt.Errorf("link a program: %w", err)
		}
	}
	return nil
}

func (s *scratch) remove() error {
	_, err := output(context.Background(), s.tree, "git", "worktree", "remove", "--force", s.dir)
	return err
}

// apply writes a fault into the worktree. What it returns takes the fault out again.
func (s *scratch) apply(fault Fault) (undo func() error, err error) {
	seeded, plain, err := fault.seed(s.dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, fault.File)
	write := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the file of a fault: %w", err)
		}
		return nil
	}
	return func() error { return write(plain) }, write(seeded)
}

// build compiles the package that holds the fault. What depends on it is compiled with its tests.
func (s *scratch) build(ctx context.Context, fault Fault) error {
	if !strings.HasSuffix(fault.File, ".go") {
		return nil
	}
	_, err := output(ctx, s.dir, "go", "build", "./"+filepath.Dir(fault.File))
	return err
}

// output returns what a command prints. Its error holds the last that the command said.
func output(ctx context.Context, dir, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	var said strings.Builder
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(arguments, " "), err, said.String())
	}
	return string(text), nil
}
