package session

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// chunk is how many bytes of a session one cookie holds. Browsers keep 4,096 of a name and its value.
	chunk = 3800
	// maxChunks bounds a session. The two of the page and the dashboards are sent together where both are ports of one
	// host, and a server reads 64 KiB of headers.
	maxChunks = 6
)

// Jar is where an origin keeps its session in a browser: in the cookie Name, and in Name-1 and so on where one is too
// short. Ports of one host share their cookies, so the page and the dashboards have a name each.
type Jar struct {
	Keys *Keys
	Name string
}

// Open returns the session of a request to an origin, such as https://HOST.
func (j Jar) Open(r *http.Request, origin string, now time.Time) (Session, error) {
	text, err := j.join(r)
	if err != nil {
		return Session{}, err
	}
	opened, err := j.Keys.Open(j.purpose(origin), text)
	if err != nil {
		return Session{}, err
	}
	var s Session
	if json.Unmarshal(opened, &s) != nil {
		return Session{}, ErrBroken
	}
	if !now.Before(s.End) || s.Refresh == "" && !s.HasToken(now) {
		return Session{}, ErrOver
	}
	return s, nil
}

// Put has a browser keep a session of an origin. It removes what a longer one has left in the browser.
func (j Jar) Put(w http.ResponseWriter, r *http.Request, origin string, s Session) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	rest := j.Keys.Seal(j.purpose(origin), text)
	count := (len(rest) + chunk - 1) / chunk
	if count > maxChunks {
		return ErrTooLong
	}
	j.remove(w, r, count)
	age := int(s.Expires().Sub(j.Keys.clock.Now()) / time.Second)
	for at := range count {
		part := rest[:min(chunk, len(rest))]
		rest = rest[len(part):]
		if at == 0 {
			part = strconv.Itoa(count) + "." + part
		}
		http.SetCookie(w, cookie(j.at(at), part, max(age, 1)))
	}
	return nil
}

// Clear removes the session from a browser.
func (j Jar) Clear(w http.ResponseWriter, r *http.Request) { j.remove(w, r, 0) }

// Size returns how many bytes of a request's headers are the session's.
func (j Jar) Size(r *http.Request) int {
	size := 0
	for _, one := range r.Cookies() {
		if j.isOurs(one.Name) {
			size += len(one.Name) + len(one.Value) + len("=; ")
		}
	}
	return size
}

// Has reports whether a request has a cookie of a session, which may be a broken one.
func (j Jar) Has(r *http.Request) bool { return len(r.CookiesNamed(j.Name)) > 0 }

// join returns what is sealed in a request's cookies.
func (j Jar) join(r *http.Request) (string, error) {
	if !j.Has(r) {
		return "", ErrNone
	}
	var all strings.Builder
	for at, count := 0, 1; at < count; at++ {
		found := r.CookiesNamed(j.at(at))
		if len(found) != 1 {
			return "", ErrBroken
		}
		part := found[0].Value
		if at == 0 {
			number, rest, _ := strings.Cut(part, ".")
			read, err := strconv.Atoi(number)
			if err != nil || read < 1 || read > maxChunks || strconv.Itoa(read) != number {
				return "", ErrBroken
			}
			part, count = rest, read
		}
		all.WriteString(part)
	}
	return all.String(), nil
}

// remove has a browser forget those cookies of a request from a place on.
func (j Jar) remove(w http.ResponseWriter, r *http.Request, from int) {
	for at := from; at < maxChunks; at++ {
		if len(r.CookiesNamed(j.at(at))) > 0 {
			http.SetCookie(w, cookie(j.at(at), "", -1))
		}
	}
}

func (j Jar) at(at int) string {
	if at == 0 {
		return j.Name
	}
	return j.Name + "-" + strconv.Itoa(at)
}

func (j Jar) isOurs(name string) bool {
	for at := range maxChunks {
		if name == j.at(at) {
			return true
		}
	}
	return false
}

func (j Jar) purpose(origin string) string { return "session " + j.Name + " " + origin }

// cookie returns one that is sent only where our own pages ask, and that no script reads.
func cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
}
