package signin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/oauth2"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// flowLife is how long a user may take at the issuer.
const flowLife = 10 * time.Minute

const flowPurpose = "oidc"

// flow is a sign-in at the issuer that is under way. It is sealed into a cookie of the browser that began it.
type flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// To is where the user goes then.
	To  string `json:"to"`
	End int64  `json:"end"`
}

// begin leads a user to the issuer.
func (p *Page) begin(w http.ResponseWriter, r *http.Request) error {
	f := flow{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		To: p.Origins.readGoal(r.URL.Query().Get("to")), End: p.Clock.Now().Add(flowLife).Unix(),
	}
	to, err := p.provider.begin(r.Context(), f)
	if err != nil {
		p.Log.Error("Cannot begin to sign a user in", "issuer", p.provider.Issuer, "error", err)
		p.fail(w, http.StatusServiceUnavailable, "The issuer "+p.provider.Name+" cannot be asked. Try again.", f.To)
		return nil
	}
	sealed, err := p.sealFlow(f)
	if err != nil {
		return err
	}
	http.SetCookie(w, brief(flowCookie, sealed, flowLife, http.SameSiteLaxMode))
	redirect(w, to)
	return nil
}

// maxFlow is how many bytes a browser keeps of the cookie of a sign-in under way.
const maxFlow = 3800

// sealFlow returns the cookie of a sign-in. An address that is too long for it is left out.
func (p *Page) sealFlow(f flow) (string, error) {
	for {
		text, err := json.Marshal(f)
		if err != nil {
			return "", err
		}
		sealed := p.Keys.Seal(flowPurpose, text)
		if len(sealed) <= maxFlow || f.To == home {
			return sealed, nil
		}
		f.To = home
	}
}

// finish sets the session of a user who comes back from the issuer.
func (p *Page) finish(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	f, is := p.takeFlow(w, r, query.Get("state"))
	if !is {
		p.fail(w, http.StatusBadRequest, "The sign-in was begun in another browser or tab, or took longer than ten "+
			"minutes. Sign in again.", home)
		return nil
	}
	if query.Has("error") || query.Get("code") == "" {
		said := query.Get("error")
		p.Log.Info("An issuer did not sign a user in", "issuer", p.provider.Issuer, "code", said[:min(len(said), 64)])
		p.fail(w, http.StatusForbidden, "The issuer "+p.provider.Name+" did not sign you in. Sign in again, or ask its "+
			"administrator for access.", f.To)
		return nil
	}
	one, err := p.provider.finish(r.Context(), query.Get("code"), f)
	if err != nil {
		p.Log.Error("Cannot sign a user in", "issuer", p.provider.Issuer, "error", err)
		code, text := http.StatusServiceUnavailable, "The issuer "+p.provider.Name+" cannot be asked. Sign in again."
		if errors.Is(err, errRefused) {
			code, text = http.StatusForbidden, "The issuer "+p.provider.Name+" did not confirm the sign-in. Sign in again."
		}
		p.fail(w, code, text, f.To)
		return nil
	}
	p.accept(w, r, one, f)
	return nil
}

// accept sets a session whose token the server accepts, and leads the user on.
func (p *Page) accept(w http.ResponseWriter, r *http.Request, one session.Session, f flow) {
	caller, _, err := p.identify(r.Context(), one.Token)
	if err == nil {
		err = p.keep(w, r, one, caller)
	}
	var refused *Refusal
	switch {
	case err == nil:
		// A redirect would come from the issuer's site, without the cookie that was just set.
		page{Script: pageScript, Title: "Signed in", Next: f.To, Label: "Continue"}.write(w, http.StatusOK, noForm)
	case errors.As(err, &refused):
		p.fail(w, refused.Code, sentences(refused.Error()), f.To)
	case errors.Is(err, access.ErrUnauthorized):
		p.Log.Error("A token of the issuer was not accepted", "issuer", p.provider.Issuer, "error", err)
		p.fail(w, http.StatusForbidden, "The issuer "+p.provider.Name+" signed you in, and its token is not accepted here. "+
			sentences(err.Error()), f.To)
	default:
		p.fail(w, http.StatusForbidden, sentences(err.Error()), f.To)
	}
}

// takeFlow returns the sign-in that a browser has begun, and takes it from the browser.
func (p *Page) takeFlow(w http.ResponseWriter, r *http.Request, state string) (flow, bool) {
	http.SetCookie(w, brief(flowCookie, "", 0, http.SameSiteLaxMode))
	kept, err := r.Cookie(flowCookie)
	if err != nil {
		return flow{}, false
	}
	text, err := p.Keys.Open(flowPurpose, kept.Value)
	if err != nil {
		return flow{}, false
	}
	var f flow
	is := json.Unmarshal(text, &f) == nil && subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) == 1 &&
		p.Clock.Now().Unix() < f.End
	return f, is
}

// fail answers with a page that says what is wrong, and leads back to the ways to sign in.
func (p *Page) fail(w http.ResponseWriter, code int, text, to string) {
	page{Title: "Not signed in", Text: text, Next: signInAt(to), Label: "Sign in"}.write(w, code, noForm)
}

// signInAt returns the address where users sign in to go on to another.
func signInAt(to string) string { return signInPath + "?" + url.Values{"to": {to}}.Encode() }

// brief returns a cookie for a moment; none at all ends it.
func brief(name, value string, life time.Duration, site http.SameSite) *http.Cookie {
	age := int(life / time.Second)
	if age == 0 {
		age = -1
	}
	//nolint:gosec // G124: what comes back from another site must bring the cookie
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: site}
}

// sentences returns an error with a remedy as sentences for users.
func sentences(text string) string {
	var all []string
	for part := range strings.SplitSeq(text, ": ") {
		first, size := utf8.DecodeRuneInString(part)
		if size == 0 {
			continue // nothing stands between two colons
		}
		all = append(all, string(unicode.ToUpper(first))+part[size:]+".")
	}
	return strings.Join(all, " ")
}
