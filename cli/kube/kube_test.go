package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

func TestParseTarget_TakesEachName(t *testing.T) {
	for text, want := range map[string]string{
		"cluster/dev": "cluster/dev", "cc/dev": "cluster/dev", "ComputeClusters.heliostat.dev/dev": "cluster/dev",
		"jobs/train": "job/train", "cjob/train": "job/train", "csvc/x": "service/x", "clusterservice/x": "service/x",
		"dev": "", "pod/x": "", "cluster/": "", "cluster/a/b": "", "/x": "", "": "",
	} {
		target, err := kube.ParseTarget(text)
		if (err == nil) != (want != "") || err == nil && target.String() != want || err != nil && outcome.Code(err) != outcome.Usage {
			t.Errorf("%q is %v (%v), want %q", text, target, err, want)
		}
	}
	for text, want := range map[string]string{"train": "job/train", "job/train": "job/train", "cluster/train": ""} {
		if target, err := kube.ParseTarget(text, kube.Job); (err == nil) != (want != "") || err == nil && target.String() != want {
			t.Errorf("as the name of a job %q is %v (%v), want %q", text, target, err, want)
		}
	}
}

func forbidden(said string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New(said))
}

func TestBecause_SaysWhatHelps(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "y")
	noKind := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "x"}, "", "", 0, true)
	for name, c := range map[string]struct {
		err  error
		code int
		says string
	}{
		"a right to read":  {forbidden(`User "a" cannot list resource "computeclusters" in API group "heliostat.dev" in the namespace "n"`), outcome.Refused, `role "view" in namespace "n"`},
		"a right to write": {forbidden(`User "a" cannot patch resource "computeclusters" in API group "heliostat.dev" in the namespace "n"`), outcome.Refused, `role "edit" in namespace "n"`},
		"a port-forward":   {forbidden(`User "a" cannot create resource "pods/portforward" in API group "" in the namespace "n"`), outcome.Refused, `role "edit"`},
		"a token":          {forbidden(`User "a" cannot get resource "secrets" in API group "" in the namespace "n"`), outcome.Refused, `role "edit"`},
		"all namespaces":   {forbidden(`User "a" cannot list resource "clusterjobs" in API group "heliostat.dev" at the cluster scope`), outcome.Refused, "in all namespaces"},
		"a policy":         {forbidden("ValidatingAdmissionPolicy 'x' denied request: spec.image: must be short"), outcome.Refused, "must be short"},
		"no credential":    {apierrors.NewUnauthorized("no"), outcome.Refused, "sign in again"},
		"not there":        {notFound, outcome.Usage, "not found"},
		"no such kind":     {noKind, outcome.Usage, "install the chart"},
		"changed by two":   {apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "y", errors.New("z")), outcome.Failed, "try again"},
		"invalid":          {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: "bad"}}, outcome.Refused, "bad"},
		"a bad argument":   {problem.Bad("replicas", "must not be negative", "give 0"), outcome.Usage, "give 0"},
		"a state":          {problem.New(409, "JobEnded", "the job has ended", "retry it"), outcome.Refused, "the job has ended; retry it"},
		"no answer":        {errors.New("connection refused"), outcome.Failed, "connection refused"},
		"no API server": {&url.Error{Op: "Get", URL: "http://localhost:8080/api", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, outcome.Failed,
			"do it: the API server http://localhost:8080 cannot be reached: refused; no kubeconfig names another one: set KUBECONFIG"},
		"interrupted": {&url.Error{Op: "Get", URL: "http://a", Err: context.Canceled}, outcome.Failed, `do it: Get "http://a": context canceled`},
	} {
		err := kube.Because(fmt.Errorf("do it: %w", c.err))
		if outcome.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: code %d, %q; want %d, %q", name, outcome.Code(err), err, c.code, c.says)
		}
	}
	if kube.Because(nil) != nil {
		t.Error("nothing is a failure")
	}
	policy := kube.Because(forbidden("ValidatingAdmissionPolicy 'x' denied request: no"))
	if strings.Contains(policy.Error(), "ask an administrator") {
		t.Errorf("a rule is taken for a right: %v", policy)
	}
}
