package access_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// TestRules_AreWholeOrNone: half of a caller's rules would hide what the other half allows.
func TestRules_AreWholeOrNone(t *testing.T) {
	const rule = `"resourceRules":[{"verbs":["list"],"apiGroups":["heliostat.dev"],"resources":["clusterjobs"]}]`
	for name, c := range map[string]struct {
		code   int
		status string
		want   error
	}{
		"all of them":                  {201, `{` + rule + `}`, nil},
		"an authorizer that lists not": {201, `{` + rule + `,"incomplete":true}`, access.ErrIncomplete},
		"a role that is missing":       {201, `{` + rule + `,"evaluationError":"role not found"}`, access.ErrIncomplete},
		"no right to ask":              {403, `{}`, access.ErrIncomplete},
		"a token that is over":         {401, `{}`, access.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			server := accesstest.Start(t, "a", "alice", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","status":`+c.status+`}`)
			})
			kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
			rules, err := kubernetes.Rules(t.Context(), callerOf(t, kubernetes, "a"), "n")
			if !errors.Is(err, c.want) || (c.want == nil) != (len(rules) == 1) {
				t.Errorf("it is %v, %v, want %v", rules, err, c.want)
			}
		})
	}
}

func TestRules_CoverWhatRBACAllows(t *testing.T) {
	rule := func(verb, group, resource string, names ...string) access.Rules {
		return access.Rules{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}}
	}
	const group = "heliostat.dev"
	for name, c := range map[string]struct {
		rules                       access.Rules
		verb, resource, subresource string
		want                        bool
	}{
		"the same":                        {rule("list", group, "clusterjobs"), "list", "clusterjobs", "", true},
		"another verb":                    {rule("get", group, "clusterjobs"), "list", "clusterjobs", "", false},
		"another group":                   {rule("list", "batch", "clusterjobs"), "list", "clusterjobs", "", false},
		"another resource":                {rule("list", group, "clusterservices"), "list", "clusterjobs", "", false},
		"every verb":                      {rule("*", group, "clusterjobs"), "list", "clusterjobs", "", true},
		"every group":                     {rule("list", "*", "clusterjobs"), "list", "clusterjobs", "", true},
		"every resource":                  {rule("list", group, "*"), "list", "clusterjobs", "", true},
		"a resource is no subresource":    {rule("get", group, "clusterjobs"), "get", "clusterjobs", "log", false},
		"a subresource":                   {rule("get", group, "clusterjobs/log"), "get", "clusterjobs", "log", true},
		"a subresource is no resource":    {rule("get", group, "clusterjobs/log"), "get", "clusterjobs", "", false},
		"a subresource of all resources":  {rule("get", group, "*/log"), "get", "clusterjobs", "log", true},
		"every resource has subresources": {rule("get", group, "*"), "get", "clusterjobs", "log", true},
		"one object alone":                {rule("list", group, "clusterjobs", "mine"), "list", "clusterjobs", "", false},
		"none":                            {nil, "list", "clusterjobs", "", false},
	} {
		what := authorizationv1.ResourceAttributes{Group: group, Verb: c.verb, Resource: c.resource, Subresource: c.subresource, Namespace: "n"}
		if got := c.rules.Cover(what); got != c.want {
			t.Errorf("%s: it is %t", name, got)
		}
	}
}
