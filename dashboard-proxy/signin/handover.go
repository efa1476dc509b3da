package signin

import (
	"errors"
	"net/http"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
)

// handOver leads a browser that has a session on the page back to the dashboards, with a code that holds the session.
// The code is posted: in an address it would be in histories and logs, and too long for a token of many groups. A
// script of the dashboards' origin that opened the window could read it there.
func (p *Page) handOver(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	origin, path, is := p.Origins.readAddress(query.Get("to"))
	if !is || !session.IsChallenge(query.Get("challenge")) || !isOfWindow(r) {
		p.refuseHandOver(w, http.StatusBadRequest, "The target address is not that of a dashboard. Open the dashboard from "+
			"the page.")
		return nil
	}
	if p.isSigned(r) {
		p.refuseHandOver(w, http.StatusForbidden, "A front proxy signs users in, and the dashboards are reached around it. "+
			"Ask an administrator to put "+p.Origins.Dashboards+" behind the front proxy.")
		return nil
	}
	err := judge(r, p.own(r), true)
	one := session.Session{}
	if err == nil {
		one, err = p.open(w, r, p.jar, p.Origins.Page)
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		p.refuseHandOver(w, refused.Code, sentences(refused.Error()))
		return nil
	case err != nil && !query.Has("again"):
		// From another site the browser brings no strict cookie, and from our own page it does.
		query.Set("again", "yes")
		page{Script: pageScript, Title: "Opening", Next: dashboardsPath + "?" + query.Encode(), Label: "Continue"}.
			write(w, http.StatusOK, noForm)
		return nil
	case err != nil:
		redirect(w, signInAt(origin+path))
		return nil
	}
	if p.provider != nil && p.provider.rotates.Load() {
		one.Refresh = "" // two sessions would take it from each other
	}
	code, err := p.Keys.SealCode(session.Code{
		Session: one, Challenge: query.Get("challenge"), Origin: origin, Path: path})
	if err != nil {
		return err
	}
	page{Script: pageScript, Title: "Opening", Next: origin + callbackPath, Label: "Continue",
		Post: map[string]string{"code": code, "to": path}}.write(w, http.StatusOK, origin)
	return nil
}

// isOfWindow reports whether a browser asks for a page that it shows in a window, and not in a frame.
func isOfWindow(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "" || dest == "document"
}

func (p *Page) refuseHandOver(w http.ResponseWriter, code int, text string) {
	page{Title: "Not opened", Text: text, Next: home, Label: "To the page"}.write(w, code, noForm)
}
