package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// style is that of the proxy's own pages.
const style = `html{color-scheme:light dark;background:Canvas;color:CanvasText}` +
	`body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}` +
	`code{overflow-wrap:anywhere}button{font:inherit;padding:.4rem 1rem}td,th{padding:.2rem 1rem .2rem 0;text-align:left}`

// page is what a browser is shown.
type page struct {
	Title, Text, Command string
	Phases               []Phase
	Resumes              *route.Target
	// Link leads to where the user can go on; where it is empty, to the same address. Without a text there is none.
	Link, LinkText string
}

// template returns the form of the proxy's own pages. It has no script, and no style but its own.
func (page) template() *template.Template {
	return template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}} · Heliostat</title>
<style>` + style + `</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{if .Phases}}<table>
<caption>Phases</caption>
<tbody>
{{range .Phases}}<tr><th scope="row">{{.Name}}</th><td>{{.State}}</td><td>{{.WaitsFor}}</td></tr>
{{end}}</tbody>
</table>
{{end}}{{with .Resumes}}<form method="post" action="` + resumePath + `">
<input type="hidden" name="kind" value="{{.Kind}}">
<input type="hidden" name="namespace" value="{{.Namespace}}">
<input type="hidden" name="name" value="{{.Name}}">
<button>Resume</button>
</form>
{{end}}{{if .Command}}<p>Or run: <code>{{.Command}}</code></p>
{{end}}{{if .LinkText}}<p><a href="{{.Link}}">{{.LinkText}}</a></p>
{{end}}</main>
</body>
</html>
`))
}

// pageOf returns the page of a refusal.
func pageOf(r *Refusal) page {
	one := page{Title: http.StatusText(r.Code), Text: r.Text, Command: r.Command, Phases: r.Phases, Resumes: r.Resumes}
	if r.Code == http.StatusServiceUnavailable && r.Command == "" && r.RetryAfter > 0 {
		one.Title, one.LinkText = "Starting", "Look again"
	}
	if r.Code == http.StatusServiceUnavailable && r.Command != "" {
		one.Title = "Suspended"
	}
	return one
}

// writePage answers a browser.
func writePage(w http.ResponseWriter, code int, one page) {
	var text bytes.Buffer
	if err := one.template().Execute(&text, one); err != nil { // texts and lists of texts always fit
		text.WriteString(one.Text)
	}
	sum := sha256.Sum256([]byte(style))
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'")
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // who asks and goes needs no answer
}

// resumePath is where the button leads.
const resumePath = "/-/resume"

// maxForm is how many bytes the form of the button may have, and formWithin how long any form may take to come.
const (
	maxForm    = 4 << 10
	formWithin = 10 * time.Second
)

// serveRoot answers with a link to the page.
func (p *Proxy) serveRoot(w http.ResponseWriter) error {
	writePage(w, http.StatusOK, page{
		Title: "Dashboards", Text: "Each cluster has its dashboard below its namespace and name. The page lists yours.",
		Link: p.PageURL, LinkText: "Open the page",
	})
	return nil
}

// serveSignIn answers what is about sessions.
func (p *Proxy) serveSignIn(w http.ResponseWriter, r *http.Request, x *exchange) error {
	switch {
	case x.isSocket:
		return &Refusal{Code: http.StatusBadRequest, Text: "no WebSocket is here: leave out the header Upgrade"}
	case p.SignIn == nil:
		return &Refusal{Code: http.StatusNotFound, Text: "nothing has this address: open the dashboard from the page"}
	}
	p.limitForm(w, r)
	p.SignIn.ServeHTTP(w, r)
	return nil
}

// limitForm ends the reading of a form that stands still. net/http sets another deadline for the next request.
func (p *Proxy) limitForm(w http.ResponseWriter, r *http.Request) *http.ResponseController {
	control := http.NewResponseController(w)
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(p.Clock.Now().Add(formWithin)) // every server's connections have them
	}
	return control
}

// serveResume resumes what a page of the proxy's own has shown a button for. Below the wildcard that is the object whose
// origin it is: its dashboard must not act on others by its visitor's session.
func (p *Proxy) serveResume(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if r.Method != http.MethodPost {
		return &Refusal{Code: http.StatusMethodNotAllowed, Text: "the path resumes an object: use POST"}
	}
	form, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || form != "application/x-www-form-urlencoded" {
		return &Refusal{Code: http.StatusUnsupportedMediaType, Text: "the body is no form: use the button on the page of a suspended object"}
	}
	x.known.Verb, x.known.IsChange = "patch", true
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	if handled, err := p.identify(ctx, w, r, x); handled || err != nil {
		return err
	}
	giveBack, err := takeOf(p.places.requests, x.caller.Holder(), "requests")
	if err != nil {
		return err
	}
	defer giveBack()
	control := p.limitForm(w, r)
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &Refusal{Code: http.StatusBadRequest, Text: "the form cannot be read: use the button on the page of a suspended object"}
	}
	_ = control.SetReadDeadline(time.Time{}) // what follows may take longer
	of, err := p.resumed(r, x)
	if err != nil {
		return err
	}
	x.known.Resource, x.known.Namespace, x.known.Name = string(of.Kind), of.Namespace, of.Name
	if err := p.Objects.Resume(r.Context(), x.caller, of.Kind, of.Namespace, of.Name); err != nil {
		return fmt.Errorf("resume %s %s/%s: %w", of.Kind, of.Namespace, of.Name, err)
	}
	w.Header().Set("Location", of.Prefix+"/")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// resumed returns what the form, or the origin, names.
func (p *Proxy) resumed(r *http.Request, x *exchange) (route.Target, error) {
	path := "/"
	if !x.target.IsBelowWildcard {
		path = map[string]string{string(route.Cluster): "/-/clusters/", string(route.Service): "/services/"}[r.PostFormValue("kind")]
		path += r.PostFormValue("namespace") + "/" + r.PostFormValue("name") + "/"
	}
	of, err := p.Site.Read(route.Request{Method: http.MethodGet, Host: r.Host, Target: path})
	var refusal *route.Refusal
	if errors.As(err, &refusal) || of.Kind != route.Cluster && of.Kind != route.Service || of.Name == "" || of.Path != "/" {
		return of, &Refusal{Code: http.StatusBadRequest, Text: "the form names no object: use the button on the page of a suspended object"}
	}
	return of, nil
}
