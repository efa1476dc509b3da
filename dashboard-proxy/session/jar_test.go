package session

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	name   = "__Host-test"
	origin = "https://host"
)

// newJar returns a jar of which the key is an hour old at noon.
func newJar(t testing.TB) Jar {
	t.Helper()
	keys, _, _ := readKeys(t, newKey)
	return Jar{Keys: keys, Name: name}
}

// tokenOf returns a token with so many bytes.
func tokenOf(size int) string {
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
	for at := range text {
		text[at] = byte('a' + random.IntN(26))
	}
	return string(text)
}

// put returns the cookies by which a browser keeps a session, given those that it has.
func put(t testing.TB, j Jar, s Session, had ...*http.Cookie) []*http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if err := j.Put(w, sending(had...), origin, s); err != nil {
		t.Fatal(err)
	}
	return w.Result().Cookies()
}

// sending returns a request with cookies.
func sending(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, one := range cookies {
		r.AddCookie(one)
	}
	return r
}

func TestJar_SplitsALongSession(t *testing.T) {
	j := newJar(t)
	for size, count := range map[int]int{100: 1, 2000: 1, 3000: 2, 8 << 10: 3, 16 << 10: 6} {
		s := with(func(s *Session) { s.Token = tokenOf(size) })
		cookies := put(t, j, s)
		if len(cookies) != count {
			t.Errorf("a token of %d bytes has %d cookies, want %d", size, len(cookies), count)
		}
		sent := 0
		for _, one := range cookies {
			sent += len(one.Name) + len(one.Value)
			checkCookie(t, one)
		}
		r := sending(cookies...)
		got, err := j.Open(r, origin, noon)
		if err != nil || got.Token != s.Token || got.Refresh != s.Refresh {
			t.Errorf("a token of %d bytes is opened as %v, %v", size, got, err)
		}
		r.AddCookie(&http.Cookie{Name: "other", Value: "x"})
		if got := j.Size(r); got < sent || got > sent+4*count {
			t.Errorf("%d bytes of cookies count as %d", sent, got)
		}
	}
	w := httptest.NewRecorder()
	err := j.Put(w, sending(), origin, with(func(s *Session) { s.Token = tokenOf(20 << 10) }))
	if !errors.Is(err, ErrTooLong) || len(w.Result().Cookies()) > 0 {
		t.Errorf("a token of 20 KiB: %v, with %d cookies", err, len(w.Result().Cookies()))
	}
}

// checkCookie checks what a browser does with a cookie.
func checkCookie(t *testing.T, one *http.Cookie) {
	t.Helper()
	isOurs := one.Secure && one.HttpOnly && one.SameSite == http.SameSiteStrictMode && one.Path == "/" && one.Domain == ""
	if !isOurs || one.MaxAge != int(MaxLife/time.Second) || len(one.Name)+len(one.Value) > 4096 {
		t.Errorf("a cookie is %.200v", one)
	}
}

func TestJar_KeepsNoLongerThanTheToken(t *testing.T) {
	j := newJar(t)
	plain := with(func(s *Session) { s.Refresh = "" })
	if age := put(t, j, plain)[0].MaxAge; age != 3600 {
		t.Errorf("a session with a token for an hour is kept for %d s", age)
	}
	for name, row := range map[string]struct {
		of    Session
		after time.Duration
		want  error
	}{
		"a token's last second":                    {plain, time.Hour - time.Second, nil},
		"a token's end":                            {plain, time.Hour, ErrOver},
		"a token's end, where it can be renewed":   {signedIn(), time.Hour, nil},
		"a session's last second":                  {signedIn(), MaxLife - time.Second, nil},
		"a session's end, also if it were renewed": {signedIn(), MaxLife, ErrOver},
	} {
		if _, err := j.Open(sending(put(t, j, row.of)...), origin, noon.Add(row.after)); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}

func TestJar_RemovesWhatIsLeft(t *testing.T) {
	j := newJar(t)
	long := put(t, j, with(func(s *Session) { s.Token = tokenOf(12 << 10) }))
	var removed []string
	for _, one := range put(t, j, signedIn(), long...) {
		if one.MaxAge < 0 {
			removed = append(removed, one.Name)
		}
	}
	if diff := cmp.Diff([]string{name + "-1", name + "-2", name + "-3", name + "-4"}, removed); diff != "" {
		t.Error(diff)
	}
	w := httptest.NewRecorder()
	j.Clear(w, sending(long...))
	if got := w.Result().Cookies(); len(got) != len(long) || got[0].MaxAge >= 0 {
		t.Errorf("signing out gives %v", got)
	}
}

func TestJar_OpensNothingElse(t *testing.T) {
	j := newJar(t)
	s := with(func(s *Session) { s.Token = tokenOf(8 << 10) })
	whole, second := put(t, j, s), put(t, j, s)
	stranger, other := newJar(t), Jar{Keys: j.Keys, Name: name + "2"}
	stranger.Keys, _, _ = readKeys(t, otherKey)
	value := func(at int, to func(string) string) []*http.Cookie {
		changed := slices.Clone(whole)
		changed[at] = &http.Cookie{Name: whole[at].Name, Value: to(whole[at].Value)}
		return changed
	}
	swapped := []*http.Cookie{
		whole[0], {Name: whole[1].Name, Value: whole[2].Value}, {Name: whole[2].Name, Value: whole[1].Value},
	}
	noSession := j.Keys.Seal(j.purpose(origin), []byte(`{"k":"OIDC"}`))
	renamed := put(t, j, signedIn())
	renamed[0].Name = other.Name
	for title, row := range map[string]struct {
		jar     Jar
		origin  string
		cookies []*http.Cookie
		want    error
	}{
		"no cookie":                   {j, origin, nil, ErrNone},
		"only a later cookie":         {j, origin, whole[1:], ErrNone},
		"a cookie too few":            {j, origin, whole[:2], ErrBroken},
		"a cookie twice":              {j, origin, append(whole, whole[1]), ErrBroken},
		"two cookies swapped":         {j, origin, swapped, ErrBroken},
		"cookies of two sessions":     {j, origin, []*http.Cookie{whole[0], second[1], whole[2]}, ErrBroken},
		"a byte more":                 {j, origin, value(2, func(v string) string { return v + "A" }), ErrBroken},
		"another letter":              {j, origin, value(1, func(v string) string { return "!" + v[1:] }), ErrBroken},
		"another count":               {j, origin, value(0, func(v string) string { return "2" + v[1:] }), ErrBroken},
		"a count that is no number":   {j, origin, value(0, func(v string) string { return "x" + v[1:] }), ErrBroken},
		"a count that is none of all": {j, origin, value(0, func(v string) string { return "99999999" + v[1:] }), ErrBroken},
		"a count with a sign":         {j, origin, value(0, func(v string) string { return "+" + v }), ErrBroken},
		"another key":                 {stranger, origin, whole, ErrBroken},
		"another origin":              {j, origin + ":8444", whole, ErrBroken},
		"another cookie":              {other, origin, renamed, ErrBroken},
		"a text that is no session":   {j, origin, []*http.Cookie{{Name: name, Value: "1." + noSession}}, ErrBroken},
	} {
		if got, err := row.jar.Open(sending(row.cookies...), row.origin, noon); !errors.Is(err, row.want) || got.Token != "" {
			t.Errorf("%s: %v, %v", title, got, err)
		}
	}
}

// FuzzOpen sends cookies as they may come. None is a session but those that were sealed.
func FuzzOpen(f *testing.F) {
	j, token := newJar(f), tokenOf(4<<10)
	good := sending(put(f, j, with(func(s *Session) { s.Token = token }))...).Header.Get("Cookie")
	for _, seed := range []string{
		good, "", name + "=1.", name + "=2.x; " + name + "-1=y", strings.ReplaceAll(good, "-1", "-2"), good + "; " + good,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Cookie", header)
		if got, err := j.Open(r, origin, noon); (err == nil) != (got.Token == token) || err != nil && got != (Session{}) {
			t.Errorf("%q is opened as %v, %v", header, got, err)
		}
	})
}
