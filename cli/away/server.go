package away

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// largestAnswer bounds what the server says of an object, or of why it refuses.
const largestAnswer = 8 << 20

// longestText is how much of a refusal in plain text is shown.
const longestText = 1000

// Server is Heliostat's server, asked as the user. It reads pods and Secrets itself: the user needs no right to them.
type Server struct {
	url    *url.URL
	client *http.Client
	token  func(context.Context) (string, error)
}

// NewServer returns the server at an address, with the bearer credential of a kubeconfig. Where the address has a token,
// the kubeconfig may be nil.
func NewServer(config *rest.Config, at console.Server) (*Server, error) {
	where, err := url.Parse(strings.TrimRight(at.URL, "/"))
	if err != nil || where.Host == "" {
		return nil, outcome.Errorf(outcome.Usage, "--server %q is no address; write https://HOST", at.URL)
	}
	if err := checkEncrypted(where); err != nil {
		return nil, err
	}
	only, err := credential(config, at)
	if err != nil {
		return nil, err
	}
	if at.Authority != "" {
		if only.CAData, err = os.ReadFile(at.Authority); err != nil {
			return nil, outcome.Errorf(outcome.Usage, "read the server's authority: %w", err)
		}
	}
	transport, err := rest.TransportFor(only)
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "read the credential of the kubeconfig: %w", err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token goes nowhere else
	return &Server{where, &http.Client{Transport: transport, CheckRedirect: stay},
		func(ctx context.Context) (string, error) { return tokenOf(ctx, only) }}, nil
}

// checkEncrypted refuses an address that would carry the token in clear text over a network.
func checkEncrypted(at *url.URL) error {
	ip, err := netip.ParseAddr(at.Hostname())
	isHere := at.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if at.Scheme == "https" || at.Scheme == "http" && isHere {
		return nil
	}
	return outcome.Errorf(outcome.Refused, "%s is not encrypted, and a token must not go there; give an address with "+
		"https://", at)
}

// credential returns what of a kubeconfig the server takes: a bearer token, and what gets one.
func credential(config *rest.Config, at console.Server) (*rest.Config, error) {
	if at.Token != "" {
		return &rest.Config{Host: at.URL, BearerToken: at.Token}, nil
	}
	if config.Impersonate.UserName != "" {
		return nil, outcome.Errorf(outcome.Refused, "the server does not support impersonation; leave out --as or --server")
	}
	only := &rest.Config{Host: at.URL, BearerToken: config.BearerToken, BearerTokenFile: config.BearerTokenFile,
		ExecProvider: config.ExecProvider, AuthProvider: config.AuthProvider, AuthConfigPersister: config.AuthConfigPersister}
	if only.BearerToken == "" && only.BearerTokenFile == "" && only.ExecProvider == nil && only.AuthProvider == nil {
		return nil, noToken()
	}
	return only, nil
}

func noToken() error {
	return outcome.Errorf(outcome.Refused, "the server accepts tokens, and the kubeconfig has none; "+
		"set HELIOSTAT_TOKEN=\"$(kubectl create token NAME)\"")
}

// tokenOf returns the token that a credential sends now.
func tokenOf(ctx context.Context, only *rest.Config) (string, error) {
	var sent string
	note := roundTrip(func(r *http.Request) (*http.Response, error) {
		_, sent, _ = strings.Cut(r.Header.Get("Authorization"), "Bearer ")
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
	})
	sender, err := rest.HTTPWrappersForConfig(only, note)
	if err != nil {
		return "", outcome.Errorf(outcome.Usage, "read the credential of the kubeconfig: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, only.Host, http.NoBody) // it goes nowhere
	if err != nil {
		return "", outcome.Errorf(outcome.Usage, "%q is no address: %w", only.Host, err)
	}
	answer, err := sender.RoundTrip(request)
	if err != nil {
		return "", outcome.Errorf(outcome.Refused, "get a token by the kubeconfig: %w", err)
	}
	_ = answer.Body.Close() // it is empty
	if sent == "" {
		return "", noToken()
	}
	return sent, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// URL returns the address of the server.
func (s *Server) URL() string { return s.url.String() }

// Token returns the token that the server gets now.
func (s *Server) Token(ctx context.Context) (string, error) { return s.token(ctx) }

// Dashboard returns where the server serves the dashboard of a cluster, or a service.
func (s *Server) Dashboard(ctx context.Context, namespace, kind, name string) (string, error) {
	var found struct{ Dashboard string }
	if err := s.decode(ctx, &found, "namespaces", namespace, kind, name); err != nil {
		return "", err
	}
	at, err := url.Parse(found.Dashboard)
	if err != nil || at.Host == "" {
		return "", outcome.Errorf(outcome.Refused,
			"the server %s serves no dashboards; ask an administrator for server.dashboards.enabled", s.url)
	}
	return found.Dashboard, checkEncrypted(at)
}

// ReadOutput implements Heads. The server goes on with what is kept of the output where the head is gone.
func (s *Server) ReadOutput(ctx context.Context, of Output, out io.Writer) error {
	asked := FormerOutput{Former: Former{of.Job.Namespace, kube.Target{Kind: kube.Job, Name: of.Job.Name}, string(of.Job.UID)},
		Attempt: of.Attempt.Number, Offset: of.Offset, IsFollowed: of.IsFollowed}
	return s.ReadFormer(ctx, asked, func(event Event) error {
		if event.Data == nil && of.Note != nil {
			of.Note(event)
		}
		_, err := out.Write(event.Data)
		return err
	})
}

// EachReplica implements Heads. The server reads each log by itself, from an offset.
func (s *Server) EachReplica(
	ctx context.Context, service *v1beta1.ClusterService, visit Visit,
) ([]heads.Deployment, error) {
	path := []string{"namespaces", service.Namespace, "services", service.Name, "replicas"}
	var list saidReplicas
	if err := s.decode(ctx, &list, path...); err != nil {
		return nil, err
	}
	for _, one := range list.Replicas {
		if !one.HasLog {
			continue
		}
		read := func(ctx context.Context, offset int64, out io.Writer) error {
			query := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
			return s.copy(ctx, out, query, append(slices.Clone(path), one.ID, "log")...)
		}
		if err := visit(one.Replica, read); err != nil {
			return nil, err
		}
	}
	return list.deployments(), nil
}

// saidReplicas is what the server says of the replicas of a service.
type saidReplicas struct {
	Deployments []heads.Deployment
	Replicas    []struct {
		heads.Replica
		HasLog bool
	}
}

// deployments returns the deployments with their replicas.
func (s *saidReplicas) deployments() []heads.Deployment {
	for i := range s.Deployments {
		of := &s.Deployments[i]
		for _, one := range s.Replicas {
			if one.Cluster == of.Cluster && one.Application == of.Application && one.Deployment == of.Name {
				of.Replicas = append(of.Replicas, one.Replica)
			}
		}
	}
	return s.Deployments
}

// copy writes an answer that is text. Of a log that does not go on it says which way.
func (s *Server) copy(ctx context.Context, out io.Writer, query url.Values, path ...string) error {
	answer, err := s.getWith(ctx, query, path...)
	var said *refusal
	switch {
	case errors.As(err, &said) && said.Reason == reason.OutputShorter.Code:
		return ErrLogShorter
	case errors.As(err, &said) && (said.Reason == reason.OutputGone.Code || said.Reason == "NotFound"):
		return ErrLogGone
	case err != nil:
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or the failure is another
	if _, err := io.Copy(out, answer.Body); err != nil {
		return fmt.Errorf("read a log from the server %s: %w", s.url, err)
	}
	return nil
}

// Call implements Heads. The request is for the service's own address, and goes to the server's for it.
func (s *Server) Call(ctx context.Context, service *v1beta1.ClusterService, request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") != "" {
		return nil, outcome.Errorf(outcome.Refused,
			"the server takes your own token there and passes none on; leave out -H Authorization or --server")
	}
	at, err := s.Dashboard(ctx, service.Namespace, "services", service.Name)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(strings.TrimRight(at, "/") + request.URL.RequestURI())
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "invalid path %q: %w", request.URL.RequestURI(), err)
	}
	request = request.Clone(ctx)
	request.URL, request.Host = to, to.Host
	answer, err := s.client.Do(request) //nolint:gosec // the user names the server, which names its own address
	if err != nil {
		return nil, s.because(err)
	}
	return answer, nil
}

// decode reads an answer that is JSON.
func (s *Server) decode(ctx context.Context, into any, path ...string) error {
	return s.decodeWith(ctx, into, nil, path...)
}

// decodeWith reads an answer that is JSON, to a request with a query.
func (s *Server) decodeWith(ctx context.Context, into any, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	answer, err := s.getWith(ctx, query, path...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if err := json.NewDecoder(io.LimitReader(answer.Body, largestAnswer)).Decode(into); err != nil {
		return fmt.Errorf("read what the server %s says of %s: %w", s.url, strings.Join(path, "/"), err)
	}
	return nil
}

// getWith asks the server, and returns an answer that is one. The caller closes its body.
func (s *Server) getWith(ctx context.Context, query url.Values, path ...string) (*http.Response, error) {
	return s.send(ctx, http.MethodGet, "", query, path...)
}

// send asks the server for an answer of some types, or of any, and returns one that is one. The caller closes its body.
func (s *Server) send(ctx context.Context, method, accept string, query url.Values, path ...string) (*http.Response, error) {
	at := s.url.JoinPath(append([]string{"v1"}, path...)...)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, at.String(), http.NoBody)
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "%s is no address: %w", at, err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, s.because(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // it is read for why
	return nil, s.refused(answer)
}

// because returns why there was no answer. One whose certificate is not trusted will not answer later either.
func (s *Server) because(err error) error {
	var untrusted *tls.CertificateVerificationError
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.As(err, &untrusted) {
		return outcome.Errorf(outcome.Refused, "ask the server %s: %w; give its authority with --server-ca FILE", s.url, err)
	}
	return kube.Because(fmt.Errorf("ask the server %s: %w", s.url, err))
}

// refusal is why the server does not answer, in its words.
type refusal struct{ Reason, Detail, Remedy string }

// Error returns what is wrong, and what helps.
func (r *refusal) Error() string {
	if r.Remedy == "" {
		return r.Detail
	}
	return r.Detail + "; " + r.Remedy
}

// refused returns what the server says of a request that it did not answer. One that is busy may answer later.
func (s *Server) refused(answer *http.Response) error {
	said := &refusal{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	isText := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") && len(text) > 0
	switch isRead := err == nil && json.Unmarshal(text, said) == nil && said.Detail != ""; {
	case isRead:
	case isText: // as its dashboards answer
		said.Detail = console.Printable(strings.TrimSpace(string(text[:min(len(text), longestText)])))
	default:
		said.Detail, said.Remedy = "it answers "+answer.Status, "check --server"
	}
	why := fmt.Errorf("ask the server %s: %w", s.url, said)
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized:
		return outcome.Errorf(outcome.Refused, "%w; or set HELIOSTAT_TOKEN=\"$(kubectl create token NAME)\"", why)
	case code == http.StatusForbidden, code == http.StatusConflict:
		return outcome.Errorf(outcome.Refused, "%w", why)
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return why
	default:
		return outcome.Errorf(outcome.Usage, "%w", why)
	}
}
