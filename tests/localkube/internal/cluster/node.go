package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/components"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/mountns"
)

// ErrAbsent says that there is no such instance.
var ErrAbsent = errors.New("there is no such instance: run localkube up")

// existing reads the state of an instance that has to be there.
func (c *Cluster) existing() error {
	var err error
	if c.groups, err = cgroup.Find(); err != nil {
		return err
	}
	state, err := c.Instance.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find instance %s: %w", c.Instance.Name, ErrAbsent)
	}
	c.set = components.Set{Instance: c.Instance, State: state}
	return err
}

// onNode runs f on one node with the instance locked.
func (c *Cluster) onNode(name string, f func(i int, n instance.Node) error) error {
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.existing(); err != nil {
		return err
	}
	i := slices.IndexFunc(c.set.Nodes(), func(n instance.Node) bool { return n.Name == name })
	if i < 0 {
		var names []string
		for _, n := range c.set.Nodes() {
			names = append(names, n.Name)
		}
		return fmt.Errorf("find node %s: instance %s has: %s", name, c.Instance.Name, strings.Join(names, " "))
	}
	return f(i+1, c.set.Nodes()[i])
}

// Stop cuts a node's power: nothing on it gets to say goodbye, its memory,
// mounts and network are lost, its disk is kept.
func (c *Cluster) Stop(name string) error {
	return c.onNode(name, func(_ int, n instance.Node) error {
		for _, group := range []string{c.set.MemberCgroup(name), c.set.PodsCgroup(name)} {
			if err := c.groups.Kill(group); err != nil {
				return err
			}
			if err := c.groups.Remove(group); err != nil {
				return err
			}
		}
		if err := c.set.Network().RemoveMember(name); err != nil {
			return err
		}
		if err := mountns.Remove(n.Dir); err != nil {
			return err
		}
		c.Log.Step("%s has no power", name)
		return nil
	})
}

// Start boots a node that was stopped, and starts what has died on one that was
// not.
func (c *Cluster) Start(ctx context.Context, name string) error {
	return c.onNode(name, func(i int, n instance.Node) error {
		net := c.set.Network()
		if err := net.EnsureMember(name, net.Node(i), net.Routes(c.set.State.Nodes, i)); err != nil {
			return err
		}
		if err := c.containerd(ctx, i, "", nil); err != nil {
			return err
		}
		if err := c.bootNode(ctx, i); err != nil {
			return err
		}
		c.Log.Step("%s is booting", name)
		return nil
	})
}

// SetJoined cuts a node off from the network while it runs on, or joins it
// again.
func (c *Cluster) SetJoined(name string, joined bool) error {
	return c.onNode(name, func(int, instance.Node) error {
		if err := c.set.Network().SetJoined(name, joined); err != nil {
			return err
		}
		c.Log.Step("%s is joined: %v", name, joined)
		return nil
	})
}

// Load imports image archives into all nodes, each that a node has not got.
func (c *Cluster) Load(ctx context.Context, paths []string) error {
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.existing(); err != nil {
		return err
	}
	archives, err := c.open(paths)
	if err != nil {
		return err
	}
	if err := c.store().Load(ctx, c.set.Nodes(), archives); err != nil {
		return err
	}
	c.Log.Step("all nodes have the images")
	return nil
}
