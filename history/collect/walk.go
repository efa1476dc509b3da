package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// walk is one look at the directories. What it learns by names only says what is worth opening.
type walk struct {
	collector *Collector
	sink      Sink
	// left is how many entries may still be looked at.
	left int
	// seen are the sessions that are there, where isWhole, and whole those whose files were all seen.
	seen, whole map[string]bool
	isWhole     bool
}

// errCrowded ends the look at a directory with too many entries.
var errCrowded = errors.New("too many entries")

// names calls each with the names in a directory.
func (w *walk) names(in *directory, each func(name string) error) error {
	for {
		names, err := in.names()
		if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if w.left--; w.left < 0 {
				return errCrowded
			}
			if err := each(name); err != nil {
				return err
			}
		}
	}
}

// root looks for sessions. Those that are too many are not followed.
func (w *walk) root() error {
	in, err := w.collector.root.directory(".")
	if err != nil {
		return fmt.Errorf("open the directory of sessions: %w", err)
	}
	defer in.close()
	err = w.names(in, func(name string) error {
		if !strings.HasPrefix(name, "session_") {
			return nil
		}
		w.seen[name] = true
		return w.session(name)
	})
	w.isWhole = err == nil
	for name := range w.collector.sessions {
		if w.isWhole && !w.seen[name] {
			delete(w.collector.sessions, name)
		}
	}
	if errors.Is(err, errCrowded) {
		return nil
	}
	return err
}

// session looks at the files of a session. The link to the latest one is refused as each link is.
func (w *walk) session(name string) error {
	logs, err := w.collector.root.directory(name + "/logs")
	if err != nil {
		return nil // it has no logs, or not yet
	}
	defer logs.close()
	if _, is := w.collector.sessions[name]; !is {
		if len(w.collector.sessions) == MaxSessions {
			return w.collector.unreadable(w.sink, "sessions")
		}
		w.collector.sessions[name] = 0
	}
	isWhole, err := w.below(logs, name, "", 0)
	w.whole[name] = isWhole
	return err
}

// below looks at the entries of a directory, and reports whether it saw all. An error is the sink's.
func (w *walk) below(in *directory, session, path string, depth int) (isWhole bool, err error) {
	isWhole = true
	err = w.names(in, func(name string) error {
		info, err := in.stat(name)
		if err != nil {
			return nil // it is gone
		}
		at := path + name
		switch {
		case !info.isDirectory && !info.isRegular:
			return nil
		case pack.CheckPath(at) != nil || info.isDirectory && depth == pack.MaxDepth:
			return w.collector.unreadable(w.sink, session)
		case info.isRegular:
			return w.collector.see(w.sink, in, sighting{session, at, name, info})
		}
		deeper, err := in.directory(name)
		if err != nil {
			isWhole = false
			return nil
		}
		defer deeper.close()
		isWholeBelow, err := w.below(deeper, session, at+"/", depth+1)
		isWhole = isWhole && isWholeBelow
		return err
	})
	var failed *readError
	if errors.Is(err, errCrowded) || errors.As(err, &failed) {
		return false, nil
	}
	return isWhole, err
}

// isGone reports whether a file of a session that was not seen is gone. An earlier collector's can be in any.
func (w *walk) isGone(session string) bool {
	if session == "" || w.isWhole && !w.seen[session] {
		return w.isWhole && w.areWhole()
	}
	return w.whole[session]
}

// areWhole reports whether each session was seen as a whole.
func (w *walk) areWhole() bool {
	for name := range w.collector.sessions {
		if !w.whole[name] {
			return false
		}
	}
	return true
}

// sighting is a file where it was seen.
type sighting struct {
	session, path, name string
	info                info
}

// see notes that a file is there, and opens it where it has something new.
func (c *Collector) see(sink Sink, in *directory, at sighting) error {
	file := c.files[at.info.id]
	if file == nil {
		if c.sessions[at.session] >= MaxFiles || len(c.files) == MaxSessions*MaxFiles {
			return c.unreadable(sink, at.session)
		}
		c.sessions[at.session]++
		file = &followed{File: File{ID: at.info.id}}
		c.files[at.info.id] = file
	}
	file.isBack = file.isBack || file.isClosed
	file.isSeen, file.isClosed, file.session, file.Path = true, false, at.session, at.path
	if file.handle != nil || file.isRefused {
		return nil
	}
	file.size, file.isBehind = at.info.size, at.info.size > file.offset
	if file.size == file.offset && !file.isBack || c.open == 2*MaxOpen {
		return nil
	}
	opened, now, err := in.open(at.name)
	if errors.Is(err, fs.ErrPermission) { // it is of another user, and stays so
		return c.refuse(sink, file)
	}
	if err != nil {
		return nil // it is gone, or another one is there: the next pass sees it
	}
	if now.id != at.info.id {
		opened.close()
		return nil
	}
	file.handle, file.quiet = opened, 0
	c.open++
	return nil
}
