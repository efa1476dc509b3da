package archive

import (
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// use returns the archive of a key for a stream, which must release it.
func (a *Archive) use(key Key) *cluster {
	c := a.cluster(key)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if current := a.clusters[key]; current != nil {
		c = current // or Trim forgot it meanwhile
	} else {
		a.clusters[key] = c
	}
	c.users++
	return c
}

func (c *cluster) release() {
	c.archive.mutex.Lock()
	defer c.archive.mutex.Unlock()
	c.users--
}

// Trim forgets up to where files were taken of pods that have ended, and clusters of which nothing is left. A pod that was killed sends
// no last list, by which it would be forgotten.
func (a *Archive) Trim(hasEnded func(key Key, pod pack.UID) bool) error {
	names, err := a.volume.List()
	if err != nil {
		return fmt.Errorf("list the spool: %w", err)
	}
	for _, c := range a.all() {
		if err := c.trim(hasEnded, slices.Contains(names, c.key.fileName(endsName))); err != nil {
			return err
		}
	}
	return nil
}

// trim does so for one cluster, once all of it is packed: lists that are not packed yet need the names of files.
func (c *cluster) trim(hasEnded func(key Key, pod pack.UID) bool, hasFile bool) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.segments()) > 0 {
		return nil
	}
	if err := c.load(); err != nil {
		return err
	}
	before := len(c.ends)
	for key := range c.ends {
		if hasEnded(c.key, key.Pod) {
			delete(c.ends, key)
		}
	}
	if len(c.ends) > 0 {
		if len(c.ends) < before {
			return c.keepEnds()
		}
		return nil
	}
	if hasFile {
		if err := c.archive.volume.Remove(c.key.fileName(endsName)); err != nil {
			return fmt.Errorf("forget the ends of files of cluster %s: %w", c.key.Cluster, err)
		}
	}
	c.archive.mutex.Lock()
	defer c.archive.mutex.Unlock()
	if c.users == 0 {
		delete(c.archive.clusters, c.key)
	}
	return nil
}
