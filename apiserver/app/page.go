package app

import (
	"context"
	"net/http"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/web"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// page answers for the page of browsers, to any caller: its files are no secret.
type page struct{ built *web.Page }

// identify implements half. Nobody is asked for a token here.
func (page) identify(context.Context, *http.Request) (*access.Caller, error) { return nil, nil }

// read implements half.
func (p page) read(*http.Request) (request, error) {
	return request{route: "page", verb: "get", serve: func(w http.ResponseWriter, r *http.Request, _ *access.Caller) {
		p.built.ServeHTTP(w, r)
	}}, nil
}

// refuse implements half, as a text for people.
func (page) refuse(w http.ResponseWriter, err error) {
	found := problem.Of(err)
	http.Error(w, found.Error(), found.Code)
}
