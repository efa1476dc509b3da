package cluster

import (
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/mountns"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/network"
)

// Down removes the instance with everything that bears its names, in whatever
// state it is; on one that is not there it does nothing.
func (c *Cluster) Down() error {
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.clear(); err != nil {
		return err
	}
	c.Log.Step("instance %s is down", c.Instance.Name)
	return nil
}

// clear ends the processes first, for they hold all the rest. With them goes
// what they have mounted and, after the last process of a namespace, what is in
// it.
func (c *Cluster) clear() error {
	names := c.Instance.Names
	if err := c.groups.Kill(names.Cgroup()); err != nil {
		return err
	}
	if err := network.Remove(names); err != nil {
		return err
	}
	if err := mountns.Remove(c.Instance.Dir); err != nil {
		return err
	}
	if err := c.groups.Remove(names.Cgroup()); err != nil {
		return err
	}
	c.groups.RemoveEmptyParent(names.Cgroup())
	return c.Instance.Discard()
}
