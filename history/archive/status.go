package archive

import "github.com/heliostat-dev/heliostat/history/pack"

// Spooled is what waits on the spool.
type Spooled struct {
	// Bytes are on the spool, which holds Most.
	Bytes, Most int64
	// Oldest is when the first segment that is no pack yet was begun, and 0 without one.
	Oldest int64
}

// Spooled returns what waits on the spool.
func (a *Archive) Spooled() Spooled {
	s := Spooled{Most: a.settings.SpoolBytes}
	for _, c := range a.all() {
		c.mutex.Lock()
		segments := c.segments()
		if len(segments) > 0 {
			_, rest, _ := parseName(segments[0].name)
			if at, is := made(rest); is && (s.Oldest == 0 || at < s.Oldest) {
				s.Oldest = at
			}
		}
		c.mutex.Unlock()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	s.Bytes = a.total
	return s
}

// Left returns how many bytes more the spool holds for a namespace.
func (a *Archive) Left(namespace pack.UID) int64 { return a.left(namespace) }
