package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Because returns an error of the API server or of a verb with its exit code, and with what helps.
func Because(err error) error {
	var known *outcome.Error
	var decided *problem.Problem
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &decided):
		return ofProblem(decided)
	case apierrors.IsForbidden(err), denied.MatchString(err.Error()): // a port-forward has the text alone
		return outcome.Errorf(outcome.Refused, "%w%s", err, whoMay(err))
	case apierrors.IsUnauthorized(err):
		return outcome.Errorf(outcome.Refused, "%w; sign in again: the API server does not accept the kubeconfig's credential",
			err)
	case isUnknownKind(err):
		return outcome.Errorf(outcome.Usage, "the API server has no kinds of %s; choose another --context, or install the chart",
			v1beta1.GroupVersion)
	case apierrors.IsNotFound(err):
		return outcome.Errorf(outcome.Usage, "%w", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsAlreadyExists(err):
		return outcome.Errorf(outcome.Refused, "%w", err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w; try again: somebody else changed it at the same time", err)
	}
	return unreached(err)
}

// nobody is the API server that client-go asks where no kubeconfig names one.
const nobody = "localhost:8080"

// unreached returns an error of a request that had no answer, with the API server that was asked and what helps. Any other
// error stays as it is.
func unreached(err error) error {
	var lost *url.Error
	if !errors.As(err, &lost) || errors.Is(err, context.Canceled) {
		return err
	}
	at, parseErr := url.Parse(lost.URL)
	if parseErr != nil {
		return err
	}
	cause := lost.Err
	var connection *net.OpError
	if errors.As(cause, &connection) {
		cause = connection.Err // without the words of Go for a connection
	}
	remedy := "check the network and the kubeconfig (KUBECONFIG, --kubeconfig, --context)"
	if at.Host == nobody {
		remedy = "no kubeconfig names another one: set KUBECONFIG, or give --kubeconfig FILE"
	}
	act := strings.TrimSuffix(err.Error(), lost.Error())
	return fmt.Errorf("%sthe API server %s://%s cannot be reached: %w; %s", act, at.Scheme, at.Host, cause, remedy)
}

// ofProblem returns what package verbs said. A bad argument is a usage; the rest is the object's state.
func ofProblem(p *problem.Problem) error {
	code := outcome.Refused
	if p.Code == http.StatusBadRequest {
		code = outcome.Usage
	}
	return outcome.Errorf(code, "%s; %s", p.Detail, p.Remedy)
}

// isUnknownKind reports whether the API server does not know the resource at all.
func isUnknownKind(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" && strings.Contains(err.Error(), "could not find the requested resource")
}

// denied is how the API server says that a user has no right: who, what, on what, where.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\w+) resource "([^"]*)"(?:.* in the namespace "([^"]*)")?`)

// whoMay returns which role has the right that a user lacks. What a policy of admission refuses has its own remedy.
func whoMay(err error) string {
	found := denied.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	verb, resource, namespace := found[2], found[3], found[4]
	how := fmt.Sprintf("role %q in namespace %q", roleOf(verb, resource), namespace)
	if namespace == "" {
		how = fmt.Sprintf("role %q in all namespaces, or name one with -n", roleOf(verb, resource))
	}
	return "; ask an administrator for the " + how
}

// roleOf returns the role of Kubernetes that permits a verb once the chart is installed.
func roleOf(verb, resource string) string {
	isRead := verb == "get" || verb == "list" || verb == "watch"
	if isRead && resource != "secrets" && resource != "pods/portforward" {
		return "view"
	}
	return "edit"
}

// missing says that an object is not there, and which one was probably meant.
func (o *Objects) missing(ctx context.Context, target Target) error {
	said := fmt.Sprintf("%s there is no %s %q", Where(o.Namespace), target.Kind.Word, target.Name)
	known, err := o.ListAll(ctx, target.Kind, Selection{Namespace: o.Namespace})
	if err != nil { // some may read objects that they know, and list none
		return outcome.Errorf(outcome.Usage, "%s", said)
	}
	if len(known) == 0 {
		return outcome.Errorf(outcome.Usage, "%s, and no other; choose another namespace with -n", said)
	}
	var names []string
	for _, one := range known {
		names = append(names, one.GetName())
	}
	return outcome.Errorf(outcome.Usage, "%s; %s", said, spelling.Remedy(target.Name, names))
}

// IsPassing reports whether the same question may have an answer later: nobody answered, or the API server is busy.
func IsPassing(err error) bool {
	var status apierrors.APIStatus
	var coded *outcome.Error
	if errors.As(err, &coded) {
		return false
	}
	return !errors.As(err, &status) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}
