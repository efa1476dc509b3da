// Command autoscale compares decisions of our autoscaler with those of Ray's own.
//
// In: the repository as the working directory, and network access to PyPI or a Python that
// has Ray. rayscheduler.py writes snapshots of a head's state; each is decided by Ray's
// ResourceDemandScheduler in a process of its own, with a limit of its CPU time, and by
// internal/autoscaler/decision, in the same run. Out: docs/results/autoscale.json and from it
// autoscale.md: both times, the nodes that each asks for, and of each difference why, in the
// words of differences.yaml. It exits with 1 where a difference has no words, or ours asks for
// too many nodes. It must never call a snapshot compared that one of the two did not decide,
// and judges no time: machines differ.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// rayVersion is the Ray that is compared with.
const rayVersion = "2.60.0"

// options are what one can ask for.
type options struct {
	python, out, state string
	limit              time.Duration
}

func main() {
	o := options{state: filepath.Join(".state", "bench-autoscale")}
	flag.StringVar(&o.python, "python", "", "a Python with ray[default]; by default one is made in .state/bench-autoscale with Ray from PyPI")
	flag.StringVar(&o.out, "out", "docs/results", "directory for the results")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "how much CPU time Ray's scheduler may take for one decision")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "autoscale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	var err error
	if o.state, err = filepath.Abs(o.state); err != nil {
		return fmt.Errorf("find the directory for state: %w", err)
	}
	if err := o.findPython(ctx); err != nil {
		return err
	}
	snapshots, err := o.snapshots(ctx)
	if err != nil {
		return err
	}
	why, err := readReasons("tests/bench/autoscale/differences.yaml")
	if err != nil {
		return err
	}
	result := Result{
		Command: "make bench-autoscale", Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(),
		Sizes: map[string]Size{}, Kinds: map[string]map[string]float64{},
	}
	if result.Commit, err = head(ctx); err != nil {
		return err
	}
	// Ours is asked before and after: whether the machine was the same shows.
	if result.Ours, err = ours(ctx, snapshots, filepath.Join(o.state, "ours.json")); err != nil {
		return err
	}
	for _, name := range []string{"small", "medium", "large"} {
		if err := result.learn(name, filepath.Join(snapshots, name)); err != nil {
			return err
		}
		theirs, err := o.theirs(ctx, name, filepath.Join(snapshots, name))
		if err != nil {
			return err
		}
		fmt.Printf("%s: Ray %s\n", name, theirs.took())
		result.Rays = append(result.Rays, theirs)
	}
	if result.Again, err = ours(ctx, snapshots, filepath.Join(o.state, "again.json")); err != nil {
		return err
	}
	result.compare(why)
	return errors.Join(result.write(o.out), result.wrong(why))
}

// snapshots makes them, and gives their directory.
func (o *options) snapshots(ctx context.Context) (string, error) {
	folder := filepath.Join(o.state, "snapshots")
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("remove old snapshots: %w", err)
	}
	_, err := o.ray(ctx, "snapshots", folder)
	return folder, err
}

// findPython makes an environment with Ray, if none was named.
func (o *options) findPython(ctx context.Context) error {
	if o.python != "" {
		return nil
	}
	venv := filepath.Join(o.state, "ray-"+rayVersion)
	o.python = filepath.Join(venv, "bin", "python")
	if exec.CommandContext(ctx, o.python, "-c", "import ray").Run() == nil {
		return nil
	}
	fmt.Println("installing Ray", rayVersion, "from PyPI")
	for _, command := range [][]string{{"python3", "-m", "venv", venv}, {o.python, "-m", "pip", "install", "--quiet", "ray[default]==" + rayVersion}} {
		if text, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("install Ray: %s: %w: %s: it needs python3 with venv (apt install python3-venv) and PyPI, or -python", strings.Join(command, " "), err, text)
		}
	}
	return nil
}

// ray runs rayscheduler.py and gives what it prints.
func (o *options) ray(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, o.python, append([]string{"tests/bench/autoscale/rayscheduler.py"}, arguments...)...)
	var complaint strings.Builder
	command.Stderr = &complaint
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run rayscheduler.py %s: %w: %s", strings.Join(arguments, " "), err, complaint.String())
	}
	return text, nil
}

// theirs is Ray's own decision, or that it took too long.
func (o *options) theirs(ctx context.Context, name, folder string) (Answer, error) {
	text, err := o.ray(ctx, "decide", folder, fmt.Sprint(o.limit.Seconds()))
	var ended *exec.ExitError
	if errors.As(err, &ended) && endedBy(ended, syscall.SIGXCPU) {
		return Answer{Name: name, TooLong: o.limit.Seconds()}, nil
	}
	answer := Answer{Name: name}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("time Ray's decision for %s: %w", name, err)
	}
	return answer, nil
}

func endedBy(process *exec.ExitError, signal syscall.Signal) bool {
	status, ok := process.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// ours are our decisions, which a test of the package makes: nothing else may import it.
func ours(ctx context.Context, snapshots, file string) ([]Answer, error) {
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestSnapshotsTakeFewNodes$", "./ray-operator/internal/autoscaler/decision")
	command.Env = append(os.Environ(), "HELIOSTAT_SNAPSHOTS="+snapshots, "HELIOSTAT_ANSWERS="+file)
	if text, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make our decisions: %w: %s", err, text)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read our decisions: %w", err)
	}
	var answers []Answer
	if err := json.Unmarshal(text, &answers); err != nil {
		return nil, fmt.Errorf("read our decisions: %w", err)
	}
	return answers, nil
}

// head is the commit, with a mark where what is compared differs from it.
func head(ctx context.Context) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("find the commit: %w: run it in the repository", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "ray-operator/internal/autoscaler/decision", "tests/bench/autoscale").Output()
	if err != nil {
		return "", fmt.Errorf("look for changes since the commit: %w", err)
	}
	if len(changes) > 0 {
		return strings.TrimSpace(string(commit)) + "+changes", nil
	}
	return strings.TrimSpace(string(commit)), nil
}
