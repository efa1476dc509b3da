package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// Stored is what the store has of an archive: the newest manifest, and the packs that it does not name.
type Stored struct {
	*index.Archive
	Key Key
	// End is how the archive ended, if it did.
	End *End
	// Objects are all that the store listed, by their names below the key.
	Objects map[string]Object
	// Manifest is the name of the newest manifest that can be read, and Named what it names. IsWhole: no later one is damaged.
	Manifest string
	Named    map[string]bool
	IsWhole  bool
	// Damaged are objects that no reader accepts. What they had is missing.
	Damaged []string
	// Left are packs for which the index has no room until others were rewritten.
	Left []string

	store   Store
	decoder *pack.Decoder
}

// Object is an object as a list of the store has it: its size, and when it was written.
type Object struct{ Size, At int64 }

// errMoved is about what went elsewhere while it was read: a segment became a pack, or a pack a part of final objects.
var errMoved = errors.New("it was moved meanwhile")

// attempts is how often an archive is read, where it changes while it is.
const attempts = 5

// OpenStored returns what the store has of an archive.
func OpenStored(ctx context.Context, store Store, decoder *pack.Decoder, key Key) (s *Stored, err error) {
	for range attempts {
		s = &Stored{Archive: index.New(key.Cluster), Key: key, store: store, decoder: decoder}
		if err = s.read(ctx); !errors.Is(err, errMoved) {
			break
		}
	}
	return s, err
}

// read adds what the store has to the index. After errMoved the index must be made again.
func (s *Stored) read(ctx context.Context) error {
	var err error
	if s.Objects, err = s.list(ctx, ""); err != nil {
		return err
	}
	if err := s.readEnd(ctx); err != nil {
		return err
	}
	if s.End != nil && s.End.State == index.Deleted {
		return nil
	}
	if err := s.readManifest(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
		// Without its manifest, a final object still has the bytes.
		isPack := strings.HasPrefix(name, "p/") || strings.HasPrefix(name, "f/") && !s.IsWhole
		if !isPack || s.Named[name] || s.IsHidden(name) {
			continue
		}
		x, err := s.open(ctx, name)
		if err == nil {
			err = s.Add(name, x)
		}
		if err := s.judge(name, err); err != nil {
			return err
		}
	}
	return nil
}

// judge takes note of an object that cannot be added.
func (s *Stored) judge(name string, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, index.ErrFull):
		s.Left = append(s.Left, name)
	case errors.Is(err, pack.ErrInvalid):
		s.Damaged = append(s.Damaged, name)
	case s.store.IsNotFound(err):
		return fmt.Errorf("open %s of cluster %s: %w: %w", name, s.Key.Cluster, errMoved, err)
	default:
		return fmt.Errorf("open %s of cluster %s: %w", name, s.Key.Cluster, err)
	}
	return nil
}

// IsHidden reports whether an object was written before the archive ended.
func (s *Stored) IsHidden(name string) bool {
	return s.End != nil && name != EndName && (s.End.State == index.Deleted || s.Objects[name].At < s.Objects[EndName].At)
}

// list returns the objects whose names begin with a text.
func (s *Stored) list(ctx context.Context, begin string) (map[string]Object, error) {
	objects, prefix := map[string]Object{}, s.Key.Prefix()
	if err := s.store.List(ctx, prefix+begin, func(key string, size, at int64) error {
		objects[strings.TrimPrefix(key, prefix)] = Object{size, at}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list the archive of cluster %s: %w", s.Key.Cluster, err)
	}
	return objects, nil
}

func (s *Stored) readEnd(ctx context.Context) error {
	if _, is := s.Objects[EndName]; !is {
		return nil
	}
	data, err := s.store.Read(ctx, s.Key.Prefix()+EndName, 0, MaxEnd+1)
	if err == nil {
		s.End, err = ParseEnd(data)
	}
	if err != nil {
		s.End = nil
	}
	return s.judge(EndName, err)
}

// open reads the index of an object.
func (s *Stored) open(ctx context.Context, name string) (*pack.Index, error) {
	return s.decoder.Open(s.object(ctx, name), s.Objects[name].Size)
}

// Read returns the bytes of a range of a row.
func (s *Stored) Read(ctx context.Context, part index.Range) ([]byte, error) {
	data, err := s.decoder.Read(s.object(ctx, part.Object), part.Run)
	if err != nil {
		return nil, err
	}
	return data[part.Skip : part.Skip+part.Length], nil
}

// object is an object of the store as an io.ReaderAt.
type object struct {
	read func(offset, length int64) ([]byte, error)
}

func (s *Stored) object(ctx context.Context, name string) object {
	return object{func(offset, length int64) ([]byte, error) {
		return s.store.Read(ctx, s.Key.Prefix()+name, offset, length)
	}}
}

// ReadAt reads from an offset on.
func (o object) ReadAt(buffer []byte, offset int64) (int, error) {
	data, err := o.read(offset, int64(len(buffer)))
	return copy(buffer, data), err
}

// ManifestTime returns when a manifest was made, as its name says, and false for a part of one.
func ManifestTime(name string) (int64, bool) {
	text, is := strings.CutPrefix(name, "m/")
	if !is || strings.Contains(text, "-") {
		return 0, false
	}
	return made(text)
}

// PackTime returns when a pack was begun, as its name says.
func PackTime(name string) (int64, bool) {
	text, is := strings.CutPrefix(name, "p/")
	if !is {
		return 0, false
	}
	return made(text)
}

// heads returns the names of manifests, the newest first.
func heads(objects map[string]Object) []string {
	var all []string
	for name := range objects {
		if _, is := ManifestTime(name); is {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// readManifest adds the newest manifest that can be read.
func (s *Stored) readManifest(ctx context.Context) error {
	s.Named = map[string]bool{}
	isDamaged := false
	for _, name := range heads(s.Objects) {
		if s.IsHidden(name) {
			continue
		}
		parts, err := s.manifest(ctx, name)
		if errors.Is(err, pack.ErrInvalid) {
			s.Damaged, isDamaged = append(s.Damaged, name), true
			continue
		}
		if err != nil {
			return s.judge(name, err)
		}
		s.Manifest, s.IsWhole = name, !isDamaged
		return s.addManifest(ctx, parts)
	}
	return nil
}

// manifest returns the index of a manifest and those of its parts.
func (s *Stored) manifest(ctx context.Context, name string) ([]*pack.Index, error) {
	head, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	all := []*pack.Index{head}
	for _, other := range head.Objects {
		if !strings.HasPrefix(other, name+"-") {
			continue
		}
		part := &pack.Index{}
		if _, is := s.Objects[other]; is {
			part, err = s.open(ctx, other)
		} else {
			err = fmt.Errorf("part %s of a manifest is away: %w", other, pack.ErrInvalid)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, part)
	}
	return all, nil
}

// addManifest adds the parts of a manifest. What they name and the store no longer has is a gap.
func (s *Stored) addManifest(ctx context.Context, parts []*pack.Index) error {
	isMissing := false
	for _, x := range parts {
		for _, name := range x.Objects {
			s.Named[name] = true
		}
		for _, run := range x.Runs {
			if run.Object > 0 {
				_, is := s.Objects[x.Objects[run.Object-1]]
				isMissing = isMissing || !is
			}
		}
	}
	if isMissing { // or they were written while the list was read
		again, err := s.list(ctx, "")
		if err != nil {
			return err
		}
		if newest := heads(again); len(newest) == 0 || newest[0] != heads(s.Objects)[0] {
			return errMoved
		}
		s.Objects = again
	}
	for _, x := range parts {
		s.loseRuns(x)
		if err := s.Add(s.Manifest, x); err != nil {
			return fmt.Errorf("add manifest %s: %w", s.Manifest, err)
		}
	}
	return nil
}

// loseRuns makes gaps of the runs whose objects are away.
func (s *Stored) loseRuns(x *pack.Index) {
	x.Runs = slices.DeleteFunc(x.Runs, func(run pack.Run) bool {
		if run.Object == 0 {
			return false
		}
		if _, is := s.Objects[x.Objects[run.Object-1]]; is {
			return false
		}
		x.Gaps = append(x.Gaps, pack.Gap{File: run.File, Offset: run.Offset, Length: run.Length, Reason: pack.ArchiverAway, At: run.At})
		return true
	})
}

// NewestManifest returns the name of the newest manifest that the store has now.
func (s *Stored) NewestManifest(ctx context.Context) (string, error) {
	objects, err := s.list(ctx, "m/")
	if err != nil {
		return "", err
	}
	if all := heads(objects); len(all) > 0 {
		return all[0], nil
	}
	return "", nil
}

// ListedManifest returns the name of the newest manifest that was listed, be it damaged or not.
func (s *Stored) ListedManifest() string {
	if all := heads(s.Objects); len(all) > 0 {
		return all[0]
	}
	return ""
}

// State returns the state of the archive at a time, as its pods ended.
func (s *Stored) State(endings map[pack.UID]index.Ending, now int64) index.State {
	if s.End != nil && (s.End.State == index.Deleted || s.IsEmpty()) {
		return s.End.State
	}
	return s.Archive.State(endings, now)
}
