package accesstest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"testing"
)

// Client is what an issuer knows of a program that signs users in.
type Client struct {
	ID, Secret, ReturnTo string
	// Claims returns those of the next token.
	Claims func() map[string]any
	// HasNoRefresh: sessions are not renewed. Rotates: a refresh token is good for one use.
	HasNoRefresh, Rotates bool
}

// grant is what a code, or a refresh token, stands for.
type grant struct{ challenge, nonce string }

// Register makes a client known, with all that it may do.
func (i *Issuer) Register(c Client) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.client, i.codes, i.refreshes = c, map[string]grant{}, map[string]bool{}
}

// Approve does as a user who signs in at the address that a browser was led to. It returns where the browser goes then.
func (i *Issuer) Approve(t testing.TB, address string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for name, want := range map[string]string{
		"client_id": i.client.ID, "redirect_uri": i.client.ReturnTo, "response_type": "code", "code_challenge_method": "S256",
	} {
		if got := query.Get(name); got != want {
			t.Errorf("a user comes to sign in with %s %q, want %q", name, got, want)
		}
	}
	code := rand.Text()
	i.codes[code] = grant{challenge: query.Get("code_challenge"), nonce: query.Get("nonce")}
	return i.client.ReturnTo + "?" + url.Values{"code": {code}, "state": {query.Get("state")}}.Encode()
}

// offer answers a browser that was led to the issuer: its user signs in, or refuses to.
func (i *Issuer) offer(t testing.TB, w http.ResponseWriter, r *http.Request) {
	i.mutex.Lock()
	to := i.client.ReturnTo
	i.mutex.Unlock()
	refused := to + "?" + url.Values{"error": {"access_denied"}, "state": {r.URL.Query().Get("state")}}.Encode()
	w.Header().Set("Content-Type", "text/html")
	_, _ = fmt.Fprintf(w, `<!doctype html><title>issuer</title><a id="approve" href="%s">Sign in</a><a id="refuse" href="%s">Cancel</a>`,
		html.EscapeString(i.Approve(t, r.URL.String())), html.EscapeString(refused)) // a browser that is gone needs no answer
}

// Revoke ends all that could be renewed.
func (i *Issuer) Revoke() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.refreshes = map[string]bool{}
}

// Renewals returns how many tokens were renewed.
func (i *Issuer) Renewals() int {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.renewals
}

// exchange answers a program that comes with a code or a refresh token.
func (i *Issuer) exchange(t testing.TB, w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	i.mutex.Lock()
	client := i.client
	i.mutex.Unlock()
	if r.Method != http.MethodPost || id != client.ID || secret != client.Secret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	nonce, is := i.take(r)
	if !is {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	claims := map[string]any{"aud": client.ID}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	maps.Copy(claims, client.Claims())
	answer := map[string]any{"access_token": "the-access-token", "token_type": "Bearer", "id_token": i.Token(t, claims)}
	if refresh := i.refreshOf(r); refresh != "" {
		answer["refresh_token"] = refresh
	}
	_ = json.NewEncoder(w).Encode(answer) // who asks and goes needs no answer
}

// take reports whether what a program comes with is good, and for which nonce.
func (i *Issuer) take(r *http.Request) (nonce string, is bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if r.PostFormValue("grant_type") == "refresh_token" {
		is = i.refreshes[r.PostFormValue("refresh_token")]
		if is {
			i.renewals++
		}
		return "", is
	}
	code := r.PostFormValue("code")
	of, is := i.codes[code]
	delete(i.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	return of.nonce, is && of.challenge == encode(sum[:]) && r.PostFormValue("redirect_uri") == i.client.ReturnTo
}

// refreshOf returns the refresh token of an answer.
func (i *Issuer) refreshOf(r *http.Request) string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	former := r.PostFormValue("refresh_token")
	if i.client.HasNoRefresh || former != "" && !i.client.Rotates {
		return former
	}
	delete(i.refreshes, former)
	made := rand.Text()
	i.refreshes[made] = true
	return made
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // who asks and goes needs no answer
}
