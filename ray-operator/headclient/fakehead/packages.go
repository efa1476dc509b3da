package fakehead

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pinned is for how long Ray keeps a package that it was asked for.
const pinned = 10 * time.Minute

// packages are what jobs run in, by their URIs. Ray deletes one with the last reference to it: a question about a package
// is a reference for a while, and a job is one until it is over. One that never had a reference stays.
type packages struct {
	archives map[string][]byte
	// pins are until when the references by questions last.
	pins map[string]time.Time
}

func newPackages() packages {
	return packages{archives: map[string][]byte{}, pins: map[string]time.Time{}}
}

// urisOf returns the URIs of packages in a runtime environment.
func urisOf(env json.RawMessage) []string {
	var fields struct {
		WorkingDir string   `json:"working_dir"`
		Modules    []string `json:"py_modules"`
	}
	_ = json.Unmarshal(env, &fields) // what it cannot be read from has none
	return slices.DeleteFunc(append(fields.Modules, fields.WorkingDir), func(uri string) bool { return !strings.Contains(uri, "://") })
}

// lacks reports whether a package is not there. Nothing but what was uploaded can be downloaded from here.
func (p *packages) lacks(uri string) bool {
	_, isThere := p.archives[uri]
	return !isThere
}

// release drops the references of jobs that are over and of questions that were long ago, and each package that had no
// other. The caller holds the lock.
func (j *jobs) release(over []*job) {
	now, released := j.clock.Now(), []string(nil)
	for uri, until := range j.packages.pins {
		if !now.Before(until) {
			delete(j.packages.pins, uri)
			released = append(released, uri)
		}
	}
	for _, one := range over {
		released = append(released, one.uris...)
	}
	for _, uri := range released {
		_, isPinned := j.packages.pins[uri]
		if !isPinned && !slices.ContainsFunc(j.live, func(one *job) bool { return slices.Contains(one.uris, uri) }) {
			delete(j.packages.archives, uri)
		}
	}
}

// hasPackage says whether there is a package. Ray keeps it for a while because it was asked, also one that is yet to come.
func (w *web) hasPackage(request *http.Request) reply {
	h, uri := w.head, "gcs://"+request.PathValue("name")
	h.packages.pins[uri] = h.clock.Now().Add(pinned)
	if h.packages.lacks(uri) {
		return reply{http.StatusNotFound, "Package " + uri + " does not exist"}
	}
	return reply{http.StatusOK, ""}
}

// upload takes a package.
func (w *web) upload(request *http.Request) reply {
	body, _ := io.ReadAll(request.Body) // it was read before
	w.head.packages.archives["gcs://"+request.PathValue("name")] = body
	return reply{http.StatusOK, ""}
}
