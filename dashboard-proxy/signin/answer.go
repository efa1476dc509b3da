package signin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// step is the script of our own pages: it goes on by itself, and keeps the fragment of the address.
//
//go:embed step.js
var step string

//go:embed step.html
var stepText string

// stepStyle is the one style of these pages: the colours that the browser's user wants.
const stepStyle = "html{background:Canvas;color:CanvasText}"

var stepPage = template.Must(template.New("step").Parse(strings.Replace(stepText, "STYLE", stepStyle, 1)))

// Refusal is why a request for a session fails. It is an error, and its texts are for the caller.
type Refusal struct {
	Code int
	// Reason is a code of Kubernetes for the sort of failure.
	Reason string
	// Detail is what is wrong, and Remedy what helps.
	Detail, Remedy string
	// RetryAfter is when the same may succeed; 0 where it will not by itself.
	RetryAfter time.Duration
}

// Error implements error.
func (r *Refusal) Error() string { return r.Detail + ": " + r.Remedy }

// away is the refusal where an issuer, or the API server, gives no answer.
func away(who string) *Refusal {
	return &Refusal{Code: http.StatusServiceUnavailable, Reason: "ServiceUnavailable",
		Detail: who + " cannot be asked", Remedy: "try again", RetryAfter: time.Second}
}

// page is one of our own, between two addresses.
type page struct {
	// Script is where step is served.
	Script string
	Title  string
	// Text says what is wrong; empty where the page goes on by itself.
	Text string
	// Next is where it goes on.
	Next string
	// Label names that for users.
	Label string
	// Post is posted to Next, instead of going there; nil is not.
	Post map[string]string
}

// write answers with a page. It runs no script but step, stands in no frame, and is not kept.
func (p page) write(w http.ResponseWriter, code int, formTo string) {
	header := w.Header()
	secure(header)
	if p.Post != nil {
		// Without any referrer a browser posts a form with the origin "null", which is nobody's.
		header.Set("Referrer-Policy", "same-origin")
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'self'; style-src 'sha256-%s'; base-uri 'none'; "+
		"frame-ancestors 'none'; form-action %s", hashOf(stepStyle), formTo))
	w.WriteHeader(code)
	_ = stepPage.Execute(w, p) // a browser that is gone needs no page
}

// hashOf returns what a policy names an inline style by.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// IsOnItsWay reports whether the page goes on by itself.
func (p page) IsOnItsWay() bool { return p.Text == "" }

// Nothing is posted by most pages.
const noForm = "'none'"

// secure sets what every answer of ours has.
func secure(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// redirect leads a browser on. Its answer is not kept.
func redirect(w http.ResponseWriter, to string) {
	secure(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// writeScript answers with step.
func writeScript(w http.ResponseWriter) {
	secure(w.Header())
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write([]byte(step)) // a browser that is gone needs no script
}

// writeJSON answers with an object.
func writeJSON(w http.ResponseWriter, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a caller who is gone needs no answer
	return nil
}

// writePlain answers with a refusal as text.
func (r *Refusal) writePlain(w http.ResponseWriter) {
	secure(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(r.RetryAfter/time.Second)))
	}
	w.WriteHeader(r.Code)
	_, _ = fmt.Fprintf(w, "Heliostat dashboard proxy: %s\n", r.Error()) // a caller who is gone needs no answer
}
