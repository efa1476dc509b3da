package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// The bounds of one part of a manifest, below those of a pack.
const (
	partEntries = 200_000
	partFiles   = 50_000
	partBytes   = 10 << 20
	partNames   = 30_000
	useLines    = 8192
	partPods    = 50_000
)

// part is the rows that one object of a manifest has, and the names of objects that it stands in place of.
type part struct {
	rows                  []*row
	names                 []string
	entries, files, bytes int
}

// writeManifest writes the rows: the parts first, and last the one that counts.
func (j *job) writeManifest(ctx context.Context) error {
	made := j.now
	if last, is := archive.ManifestTime(j.stored.ListedManifest()); is {
		made = max(made, last+1)
	}
	head := fmt.Sprintf("m/%013d", made)
	parts := j.parts()
	for i, one := range parts[1:] {
		name := fmt.Sprintf("%s-%d", head, i+1)
		parts[0].names = append(parts[0].names, name)
		if err := j.writePart(ctx, name, one, nil); err != nil {
			return err
		}
	}
	// The other keeper may have been here: then this manifest would take its rows back.
	newest, err := j.stored.NewestManifest(ctx)
	if err != nil {
		return err
	}
	if newest != j.stored.ListedManifest() {
		return errChanged
	}
	return j.writePart(ctx, head, parts[0], j.stored.Uses())
}

// parts divides the rows among the objects of a manifest.
func (j *job) parts() []*part {
	all := []*part{{}}
	used := map[string]bool{}
	for _, r := range j.plan.rows {
		one := all[len(all)-1]
		entries := len(r.Ranges) + len(r.Gaps) + 1
		size := 80 + len(r.Path) + 40*len(r.Ranges) + 30*len(r.Gaps)
		if one.files == j.work.partFiles || one.entries > 0 && (one.entries+entries > partEntries || one.bytes+size > partBytes) {
			one = &part{}
			all = append(all, one)
		}
		one.rows = append(one.rows, r)
		one.files, one.entries, one.bytes = one.files+1, one.entries+entries, one.bytes+size
		for _, place := range r.Ranges {
			used[place.Object] = true
		}
	}
	var names []string
	for name := range j.stored.Objects {
		if isTaken(j.stored, name) && !used[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i := 0; len(names) > 0; i++ {
		if i == len(all) {
			all = append(all, &part{})
		}
		count := min(len(names), j.work.partNames)
		all[i].names, names = names[:count:count], names[count:]
	}
	return all
}

// isTaken reports whether an object is one that the new manifest has, or stands in place of.
func isTaken(s *archive.Stored, name string) bool {
	if strings.HasPrefix(name, "m/") || name == archive.EndName || isUnread(s, name) {
		return false
	}
	if s.Named[name] || strings.HasPrefix(name, "p/") {
		return true
	}
	return strings.HasPrefix(name, "f/") && !s.IsWhole // it was read as a pack
}

// writePart writes one object of a manifest.
func (j *job) writePart(ctx context.Context, name string, one *part, uses []pack.Use) error {
	w := j.encoder.NewWriter(j.key.Cluster, j.now)
	type placed struct {
		row   *row
		place index.Range
	}
	byObject := map[string][]placed{}
	lists := map[pack.UID][]*row{}
	for _, r := range one.rows {
		for _, place := range r.Ranges {
			byObject[place.Object] = append(byObject[place.Object], placed{r, place})
		}
		if r.IsListed {
			lists[r.Pod] = append(lists[r.Pod], r)
		}
		for _, gap := range r.Gaps {
			if r.Path == "" {
				continue
			}
			if err := w.AddGap(r.File, gap); err != nil {
				return fmt.Errorf("make manifest of cluster %s: %w", j.key.Cluster, err)
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(byObject)) {
		for _, at := range byObject[object] {
			if err := w.AddRun(at.row.File, object, at.place.Run); err != nil {
				return fmt.Errorf("make manifest of cluster %s: %w", j.key.Cluster, err)
			}
		}
	}
	if err := j.addLists(w, lists, !strings.Contains(name, "-")); err != nil {
		return fmt.Errorf("make manifest of cluster %s: %w", j.key.Cluster, err)
	}
	for _, other := range one.names {
		w.AddObject(other)
	}
	for _, use := range uses[max(0, len(uses)-useLines):] {
		w.AddUse(use)
	}
	data, err := w.Finish()
	if err != nil {
		return fmt.Errorf("make manifest of cluster %s: %w", j.key.Cluster, err)
	}
	if err := j.store.Write(ctx, j.key.Prefix()+name, data); err != nil {
		return fmt.Errorf("write manifest %s of cluster %s: %w", name, j.key.Cluster, err)
	}
	return nil
}

// addLists adds the sizes of files that lists had. That of each pod is in the part that counts, also where it has no files any more.
func (j *job) addLists(w *pack.Writer, lists map[pack.UID][]*row, isHead bool) error {
	isFinal := j.stored.Lists()
	if isHead {
		for pod := range isFinal {
			if _, is := lists[pod]; !is && len(lists) < partPods {
				lists[pod] = nil
			}
		}
	}
	for _, pod := range slices.SortedFunc(maps.Keys(lists), func(a, b pack.UID) int { return slices.Compare(a[:], b[:]) }) {
		var files []pack.File
		var sizes []pack.Size
		for _, r := range lists[pod] {
			files, sizes = append(files, r.File), append(sizes, pack.Size{Size: r.Size, Acked: r.Acked})
		}
		if err := w.AddList(pod, isFinal[pod], files, sizes); err != nil {
			return err
		}
	}
	return nil
}
