package rest

import (
	"context"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Resume does for a caller what the call ResumeObject does: for a button, which sends a form. Why not is a problem.
func (a *API) Resume(ctx context.Context, caller *access.Caller, kind, namespace, name string) *problem.Problem {
	_, err := a.portal.ResumeObject(withCaller(ctx, caller),
		&heliostatv1.ResumeObjectRequest{Namespace: namespace, Kind: kind, Name: name})
	if err != nil {
		return problem.Of(err)
	}
	return nil
}
