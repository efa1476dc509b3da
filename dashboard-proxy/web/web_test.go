package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func pageOf(files map[string]string) *Page {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &Page{files: all, policy: "p", isFixed: true}
}

func ask(p *Page, method, path, accepted string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header.Set("Accept-Encoding", accepted)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestPage_ServesFilesAndPlaces(t *testing.T) {
	built := map[string]string{
		"index.html": "index", "index.html.br": "br", "main-1.js": "code", "main-1.js.gz": "zipped", "main-1.js.br": "br",
		"icon-1.svg": "icon",
		".gitignore": "*",
	}
	const missing = "The page has no such file. Load the page again.\n"
	const kept, checked = "public, max-age=31536000, immutable", "no-cache"
	for name, c := range map[string]struct {
		method, path, accepted string
		code                   int
		coding, caching, body  string
	}{
		"the root goes to the page":           {"GET", "/", "", 302, "", checked, ""},
		"the base without its slash too":      {"GET", "/ui", "", 302, "", checked, ""},
		"the base is the first file":          {"GET", "/ui/", "", 200, "", checked, "index"},
		"a place is the first file":           {"GET", "/ui/clusters/a/b.c", "", 200, "", checked, "index"},
		"a place without a dot too":           {"GET", "/ui/new", "br", 200, "br", checked, "br"},
		"a file is kept for good":             {"GET", "/ui/main-1.js", "", 200, "", kept, "code"},
		"brotli is taken before gzip":         {"GET", "/ui/main-1.js", "gzip, deflate, br", 200, "br", kept, "br"},
		"gzip is taken":                       {"GET", "/ui/main-1.js", "gzip", 200, "gzip", kept, "zipped"},
		"what is refused is not sent":         {"GET", "/ui/main-1.js", "br;q=0, gzip; q=0.5", 200, "gzip", kept, "zipped"},
		"a form that is not there is not":     {"GET", "/ui/icon-1.svg", "br", 200, "", kept, "icon"},
		"a head has no body":                  {"HEAD", "/ui/main-1.js", "", 200, "", kept, ""},
		"a file of a former build is missing": {"GET", "/ui/main-0.js", "br", 404, "", "no-store", missing},
		"a hidden file is missing":            {"GET", "/ui/.gitignore", "", 404, "", "no-store", missing},
		"nothing is written":                  {"POST", "/ui/", "", 405, "", "no-store", "The page is read by GET alone.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			came := ask(pageOf(built), c.method, c.path, c.accepted)
			header := came.Header()
			if came.Code != c.code || header.Get("Content-Encoding") != c.coding || header.Get("Cache-Control") != c.caching ||
				came.Body.String() != c.body {
				t.Errorf("%d %v %q", came.Code, header, came.Body)
			}
			if header.Get("Content-Security-Policy") != "p" || header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("it has no policy: %v", header)
			}
		})
	}
}

func TestPage_SaysThatItWasLeftOut(t *testing.T) {
	came := ask(pageOf(map[string]string{".gitignore": "*"}), "GET", "/ui/", "br")
	if came.Code != http.StatusNotImplemented || !strings.Contains(came.Body.String(), "make web") {
		t.Errorf("%d %q", came.Code, came.Body)
	}
}

func TestNew_ReadsADirectoryAgainAndAgain(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.js")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := New(Settings{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	write(outside, "secret")
	if err := os.Symlink(outside, filepath.Join(dir, "link.js")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		write(filepath.Join(dir, "main.js"), text)
		came := ask(page, "GET", "/ui/main.js", "")
		if came.Body.String() != text || came.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%q %v", came.Body, came.Header())
		}
	}
	if came := ask(page, "GET", "/ui/link.js", ""); came.Code == http.StatusOK {
		t.Error("a file outside of the directory is served")
	}
	if _, err := New(Settings{Directory: filepath.Join(dir, "none")}); err == nil {
		t.Error("a directory that is not there is taken")
	}
}

func TestNew_WritesThePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		ancestors []string
		want      string
	}{
		"nobody shows it in a frame": {nil, "frame-ancestors 'none'"},
		"some do":                    {[]string{"https://a", "https://b"}, "frame-ancestors https://a https://b"},
	} {
		page, err := New(Settings{FrameAncestors: c.ancestors})
		if err != nil || !strings.HasPrefix(page.policy, "default-src 'self'; ") || !strings.HasSuffix(page.policy, c.want) {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
	}
	for _, bad := range []string{"", "https://a; script-src *", "a,b", "'self'"} {
		if page, err := New(Settings{FrameAncestors: []string{bad}}); err == nil {
			t.Errorf("%q is taken: %s", bad, page.policy)
		}
	}
}
