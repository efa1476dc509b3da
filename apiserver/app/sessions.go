package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/signin"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// SignIn is how users of the page sign in.
type SignIn struct {
	// Origins are where the page and the dashboards are reached.
	Origins signin.Origins
	// KeyFile has the keys that seal sessions, one on each line: the current one, then former ones. It is read again when
	// it changes.
	KeyFile string
	// Config says how users sign in, and Links lead from objects to other programs.
	Config signin.Config
	Links  []signin.Link
}

// SignInFiles say where SignIn is read from. An empty one is none.
type SignInFiles struct {
	// Page and Dashboards are addresses, and Wildcard is a host, as ParseOrigins of signin takes them.
	Page, Dashboards, Wildcard string
	// Keys, SignIn and Links are files.
	Keys, SignIn, Links string
}

// ReadSignIn reads and checks how users sign in.
func ReadSignIn(files SignInFiles, identity access.Identity) (*SignIn, error) {
	s := &SignIn{KeyFile: files.Keys}
	var err error
	if s.Origins, err = signin.ParseOrigins(files.Page, files.Dashboards, files.Wildcard); err != nil {
		return nil, err
	}
	if files.SignIn != "" {
		text, err := os.ReadFile(files.SignIn)
		if err != nil {
			return nil, fmt.Errorf("read the sign-in file: %w", err)
		}
		if s.Config, err = signin.ParseConfig(text, identity); err != nil {
			return nil, err
		}
	}
	if files.Links == "" {
		return s, nil
	}
	text, err := os.ReadFile(files.Links)
	if err != nil {
		return nil, fmt.Errorf("read the links: %w", err)
	}
	s.Links, err = signin.ParseLinks(text)
	return s, err
}

// newSignIn returns what signs users in on the page's origin and on the dashboards'. Without settings it is nothing.
func newSignIn(cfg Config, kubernetes *access.Kubernetes) (*signin.Page, *signin.Dashboards, error) {
	if cfg.SignIn == nil {
		return nil, nil, nil
	}
	keys, err := session.ReadKeys(cfg.SignIn.KeyFile, cfg.Clock, cfg.Log)
	if err != nil {
		return nil, nil, err
	}
	return signin.New(signin.Needs{
		Origins: cfg.SignIn.Origins, Config: cfg.SignIn.Config, Identity: cfg.Identity, Links: cfg.SignIn.Links,
		Keys: keys, Access: kubernetes, Clock: cfg.Clock, Log: cfg.Log,
	})
}

// sessions is the half by which users of the page sign in. Without a page it is none.
type sessions struct {
	page  *signin.Page
	clock clock.PassiveClock
}

// open returns a request that came with a session's cookie as one with a token. Those about sessions and for files of the
// page stay as they are: no token counts there.
func (s sessions) open(half half, w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	switch half.(type) {
	case sessions, page:
		return r, nil
	}
	if s.page == nil {
		return r, nil
	}
	opened, err := s.page.Open(w, r)
	return opened, ofSession(err)
}

// size returns how many bytes of a request's headers are its session's.
func (s sessions) size(r *http.Request) int {
	if s.page == nil {
		return 0
	}
	return s.page.Size(r)
}

// identify implements half. Whose a request is, is what it asks about.
func (s sessions) identify(context.Context, *http.Request) (*access.Caller, error) {
	return nil, nil //nolint:nilnil // nobody is no error here
}

// read implements half.
func (s sessions) read(*http.Request) (request, error) {
	return request{route: "session", serve: func(w http.ResponseWriter, r *http.Request, _ *access.Caller) {
		// It also ends what net/http reads of the body afterwards. The next request has another one.
		_ = http.NewResponseController(w).SetReadDeadline(s.clock.Now().Add(headerWithin)) // every server's connections have them
		if err := s.page.Serve(w, r); err != nil {
			s.refuse(w, err)
		}
	}}, nil
}

// refuse implements half.
func (s sessions) refuse(w http.ResponseWriter, err error) {
	problem.Of(ofSession(err)).Write(w, w.Header().Get(requestID))
}

// ofSession returns a refusal of a session as all halves write it.
func ofSession(err error) error {
	var refused *signin.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	return problem.New(refused.Code, refused.Reason, refused.Detail, refused.Remedy).Later(refused.RetryAfter)
}
