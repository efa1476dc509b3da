package web

import (
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// What a program says that was built without the page.
const missing = "The page is not in this program, which was built without it.\n" +
	"Install node, run \"make web\" and build the server again.\n" +
	"Everything on the page is also in the API below /v1, and in kubectl.\n"

// forms are those in which a file can be sent, the smallest first.
var forms = []struct{ coding, suffix string }{{"br", ".br"}, {"gzip", ".gz"}, {"", ""}}

// ServeHTTP implements http.Handler for paths that Serves has.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", p.policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	switch name, isBelow := strings.CutPrefix(r.URL.Path, Base); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		p.say(w, http.StatusMethodNotAllowed, "The page is read by GET alone.\n")
	case !isBelow:
		header.Set("Cache-Control", "no-cache")
		header.Set("Location", Base)
		w.WriteHeader(http.StatusFound)
	case isFile(name):
		p.serveFile(w, r, name)
	default:
		p.serveFile(w, r, index)
	}
}

// isFile reports whether a name below the base is one of a file. All others are places that the page itself knows.
func isFile(name string) bool { return !strings.Contains(name, "/") && strings.Contains(name, ".") }

// serveFile answers with a file in the smallest form that the browser takes.
func (p *Page) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	content, coding, err := p.choose(name, r.Header.Values("Accept-Encoding"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && name == index:
		p.say(w, http.StatusNotImplemented, missing)
		return
	case errors.Is(err, fs.ErrNotExist):
		p.say(w, http.StatusNotFound, "The page has no such file. Load the page again.\n")
		return
	case err != nil:
		p.say(w, http.StatusInternalServerError, "The page cannot be read. Try again.\n")
		return
	}
	header := w.Header()
	header.Set("Content-Type", typeOf(name))
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Add("Vary", "Accept-Encoding")
	header.Set("Cache-Control", p.caching(name))
	if coding != "" {
		header.Set("Content-Encoding", coding)
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) //nolint:gosec // G705: it is a file of the page; who goes away needs no answer
	}
}

// caching says how long a file can be kept: for good where its name changes with its content.
func (p *Page) caching(name string) string {
	switch {
	case !p.isFixed:
		return "no-store"
	case name == index:
		return "no-cache"
	default:
		return "public, max-age=31536000, immutable"
	}
}

// choose returns a file in the smallest form that is taken and there.
func (p *Page) choose(name string, accepted []string) (content []byte, coding string, err error) {
	for _, form := range forms {
		if form.coding != "" && !takes(accepted, form.coding) {
			continue
		}
		content, err = p.read(name + form.suffix)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return content, form.coding, err
		}
	}
	return nil, "", err
}

// takes reports whether a browser that sends Accept-Encoding takes a coding.
func takes(accepted []string, coding string) bool {
	for _, header := range accepted {
		for part := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
			quality, isGiven := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
			value, err := strconv.ParseFloat(quality, 64)
			if strings.EqualFold(strings.TrimSpace(name), coding) && (!isGiven || err == nil && value > 0) {
				return true
			}
		}
	}
	return false
}

// types are those of the page's files.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

func typeOf(name string) string {
	if known, is := types[path.Ext(name)]; is {
		return known
	}
	return "application/octet-stream"
}

// say answers with a text.
func (p *Page) say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // as above
}
