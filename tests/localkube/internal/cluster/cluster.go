// Package cluster brings an instance up, keeps it up and takes it down.
//
// In: an instance's name and what is wanted. Out: a running cluster, or nothing
// at all. Every step of Up looks at what is there and does what is missing, so
// that a command that was killed is repeated and not repaired; Down goes by
// names and paths and needs no record of what was made. It must never act
// without the instance's lock, and never on another instance.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/baseimage"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/binaries"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/components"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/deps"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/imagestore"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/mountns"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/network"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/progress"
)

// limit is far above what Up needs on a loaded machine (5 to 20 s without the
// unpacking of images, which has a limit of its own).
const limit = 3 * time.Minute

// Cluster is one instance and the means to work on it.
type Cluster struct {
	Instance instance.Instance
	Source   string // of the programs; empty: looked for when needed
	Checkout string // of the repository, which alone may change its instances; empty: any may
	Cache    string // directory for programs and base images
	Log      *progress.Log

	groups cgroup.Hierarchies
	set    components.Set
}

// Wanted is what Up is to reach.
type Wanted struct {
	instance.Spec
	Images []string // paths of image archives
}

// lock keeps other commands out of the instance, and this one out of another checkout's.
func (c *Cluster) lock() (*instance.Lock, error) {
	lock, err := c.Instance.Lock(func() { c.Log.Step("waiting for another command on instance %s", c.Instance.Name) })
	if err != nil {
		return nil, err
	}
	if c.groups, err = cgroup.Find(); err == nil {
		err = c.checkOwner()
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// checkOwner refuses an instance of another checkout. A state that cannot be read names none.
func (c *Cluster) checkOwner() error {
	state, err := c.Instance.Load()
	if err != nil || !isHeld(state.Checkout, c.Checkout, len(c.groups.Processes(c.Instance.Names.Cgroup())) > 0) {
		return nil
	}
	return fmt.Errorf("change instance %s: checkout %s holds it: give another name (--name NAME; of make, INSTANCE=NAME), "+
		"or run localkube down --name %s there", c.Instance.Name, state.Checkout, c.Instance.Name)
}

// isHeld reports whether an instance is another checkout's than that which asks: one that is still there, and of whose
// programs any runs. A run that was killed holds nothing.
func isHeld(owner, asks string, runs bool) bool {
	if asks == "" || owner == "" || owner == asks || !runs {
		return false
	}
	_, err := os.Stat(owner)
	return !errors.Is(err, fs.ErrNotExist)
}

// Up brings the instance to what is wanted. On one that runs it starts what has
// died or was stopped, joins what is partitioned, and loads images that are
// missing; it refuses to change the number of nodes or devices.
func (c *Cluster) Up(ctx context.Context, w Wanted) error {
	if w.Nodes > plan.MaxNodes {
		return fmt.Errorf("bring up %d nodes: an instance has at most %d", w.Nodes, plan.MaxNodes)
	}
	if err := deps.Check(w.Nodes > 0); err != nil {
		return err
	}
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.settle(ctx, w.Spec); err != nil {
		return err
	}
	archives, err := c.archives(w)
	if err != nil {
		return err
	}
	return c.run(ctx, archives)
}

// settle reads the instance's state, or makes it.
func (c *Cluster) settle(ctx context.Context, spec instance.Spec) error {
	state, err := c.Instance.Load()
	switch {
	case err == nil && state.Spec != spec:
		return fmt.Errorf("bring up instance %s: it has %d nodes, %d devices of each kind, PodGroups %t and addresses of %s, "+
			"wanted are %d, %d, %t and %s: run localkube down --name %s first",
			c.Instance.Name, state.Nodes, state.GPUs, state.PodGroups, state.IPFamilies,
			spec.Nodes, spec.GPUs, spec.PodGroups, spec.IPFamilies, c.Instance.Name)
	case errors.Is(err, fs.ErrNotExist):
		if state, err = c.begin(ctx, spec); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%w: run localkube down --name %s", err, c.Instance.Name)
	default:
		if err := c.keepPrograms(ctx, state.Programs); err != nil {
			return err
		}
	}
	c.set = components.Set{Instance: c.Instance, State: state}
	return nil
}

// keepPrograms builds the instance's programs again if the cache was emptied. It
// must not get other ones: those would not count as the ones that run.
func (c *Cluster) keepPrograms(ctx context.Context, have instance.Programs) error {
	if _, err := os.Stat(have.Kube); err == nil {
		return nil
	}
	built, err := c.Build(ctx)
	if err == nil && built != have {
		err = fmt.Errorf("its programs %s are gone and cannot be built again from other sources", have.Kube)
	}
	if err != nil {
		return fmt.Errorf("bring up instance %s: %w: run localkube down --name %s", c.Instance.Name, err, c.Instance.Name)
	}
	return nil
}

// begin removes whatever is left under the instance's names before it takes
// networks of its own; two instances must not choose at the same time.
func (c *Cluster) begin(ctx context.Context, spec instance.Spec) (instance.State, error) {
	programs, err := c.Build(ctx)
	if err != nil {
		return instance.State{}, err
	}
	if err := c.clear(); err != nil {
		return instance.State{}, err
	}
	lock, err := instance.LockDir(c.Instance.Base)
	if err != nil {
		return instance.State{}, err
	}
	defer lock.Release()
	taken, err := instance.TakenIndexes(c.Instance.Base)
	if err != nil {
		return instance.State{}, err
	}
	routes, err := network.HostRoutes()
	if err != nil {
		return instance.State{}, err
	}
	index, err := plan.FreeIndex(taken, routes)
	if err != nil {
		return instance.State{}, err
	}
	state := instance.State{Spec: spec, Index: index, Programs: programs, Checkout: c.Checkout}
	return state, c.Instance.Store(state)
}

// Build builds the programs into the cache.
func (c *Cluster) Build(ctx context.Context) (instance.Programs, error) {
	source := c.Source
	if source == "" {
		var err error
		if source, err = binaries.FindSource(); err != nil {
			return instance.Programs{}, err
		}
	}
	b := binaries.Builder{Source: source, Cache: filepath.Join(c.Cache, "bin"), Log: c.Log}
	return b.Build(ctx)
}

func (c *Cluster) archives(w Wanted) ([]imagestore.Archive, error) {
	if w.Nodes == 0 {
		if len(w.Images) > 0 {
			return nil, errors.New("load images: a control plane alone has no nodes for them")
		}
		return nil, nil
	}
	dir := filepath.Join(c.Cache, "images")
	lock, err := instance.LockDir(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	paths, err := baseimage.Build(dir, c.set.State.Programs.Pause)
	if err != nil {
		return nil, err
	}
	return c.open(append(paths, w.Images...))
}

func (c *Cluster) open(paths []string) ([]imagestore.Archive, error) {
	var archives []imagestore.Archive
	for _, path := range paths {
		a, err := imagestore.Open(path, filepath.Join(c.Cache, "digests"))
		if err != nil {
			return nil, err
		}
		archives = append(archives, a)
	}
	return archives, nil
}

func (c *Cluster) store() imagestore.Store {
	return imagestore.Store{Instance: c.Instance, Groups: c.groups, Log: c.Log}
}

// run brings everything up that the state names. Nodes prepare while the
// control plane starts.
func (c *Cluster) run(ctx context.Context, archives []imagestore.Archive) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var seed string
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return c.controlPlane(inner) })
	if nodes := c.set.Nodes(); len(nodes) > 0 {
		group.Go(func() error {
			var err error
			seed, err = c.seed(inner, archives)
			if err != nil {
				return err
			}
			return c.each(inner, func(ctx context.Context, i int) error {
				return c.containerd(ctx, i, seed, archives)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	since := time.Now()
	if c.kubeletsRun() {
		since = time.Time{}
	}
	if err := c.each(ctx, c.bootNode); err != nil {
		return err
	}
	if err := c.ready(ctx, since); err != nil {
		return err
	}
	if err := c.store().Load(ctx, c.set.Nodes(), archives); err != nil {
		return err
	}
	c.Log.Step("instance %s is up", c.Instance.Name)
	return nil
}

// seed is only needed for nodes that have no images yet.
func (c *Cluster) seed(ctx context.Context, archives []imagestore.Archive) (string, error) {
	for _, n := range c.set.Nodes() {
		if _, err := os.Stat(n.Images()); err != nil {
			return c.store().Seed(ctx, archives)
		}
	}
	return "", nil
}

// each runs f for all nodes at the same time; nodes count from 1.
func (c *Cluster) each(ctx context.Context, f func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.set.Nodes() {
		group.Go(func() error { return f(ctx, i+1) })
	}
	return group.Wait()
}

// prepare makes what all programs need: certificates, files, the network.
func (c *Cluster) prepare() error {
	if err := c.set.Authority().Make(time.Now(), c.set.Identities()); err != nil {
		return err
	}
	if err := c.set.Configure(); err != nil {
		return err
	}
	if err := c.copySelf(); err != nil {
		return err
	}
	n := c.set.Network()
	nodes := c.set.State.Nodes
	if err := n.EnsureBridge(); err != nil {
		return err
	}
	if err := n.EnsureMember(plan.ControlPlane, n.ControlPlane(), n.Routes(nodes, 0)); err != nil {
		return err
	}
	for i, node := range c.set.Nodes() {
		if err := n.EnsureMember(node.Name, n.Node(i+1), n.Routes(nodes, i+1)); err != nil {
			return err
		}
	}
	return n.EnsureHostRoutes(nodes)
}

// copySelf gives the instance its own copy of this program: the one that runs
// may be one that go run removes.
func (c *Cluster) copySelf() error {
	target := c.set.Agent()
	if _, err := os.Stat(target); err == nil || c.set.State.Nodes == 0 {
		return nil
	}
	err := copyFile("/proc/self/exe", target)
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", target, err)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// start starts a program unless it runs.
func (c *Cluster) start(p process.Program) (started bool, err error) {
	if p.Running(c.groups) {
		return false, nil
	}
	return true, p.Start(c.groups)
}

func (c *Cluster) startAll(programs []process.Program) error {
	for _, p := range programs {
		if _, err := c.start(p); err != nil {
			return err
		}
	}
	return nil
}

// containerd prepares node i as far as it goes without an API server. When
// nothing of the node runs, it boots: with fresh mounts, as after a power cut.
func (c *Cluster) containerd(ctx context.Context, i int, seed string, archives []imagestore.Archive) error {
	n := c.set.Nodes()[i-1]
	if err := c.groups.MakeEverywhere(c.set.PodsCgroup(n.Name)); err != nil {
		return err
	}
	if err := os.MkdirAll(n.Path("tmp"), 0o755); err != nil {
		return fmt.Errorf("prepare %s: %w", n.Name, err)
	}
	if err := c.store().Populate(ctx, n, seed, archives); err != nil {
		return err
	}
	if len(c.nodeProcesses(n)) == 0 {
		if err := mountns.Make(ctx, c.groups, c.Instance, n, c.Instance.Names.Cgroup("work")); err != nil {
			return err
		}
	}
	p := c.set.Containerd(i)
	if _, err := c.start(p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return imagestore.AwaitSocket(ctx, c.groups, p, n.Socket())
}

func (c *Cluster) nodeProcesses(n instance.Node) []int {
	return append(c.groups.Processes(c.set.MemberCgroup(n.Name)), c.groups.Processes(c.set.PodsCgroup(n.Name))...)
}

// bootNode starts node i once its containerd answers.
func (c *Cluster) bootNode(_ context.Context, i int) error {
	return c.startAll(c.set.NodePrograms(i))
}
