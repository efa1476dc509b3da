// Package accesstest stands in for an API server, and for an issuer of tokens, as far as tests of the server need them.
//
// In: tokens with the names of their owners, and what it answers beside reviews. Out: an address with TLS, files with its
// authority and with the token of the server's own account, and every request that came, with its headers. That account
// may impersonate any user.
//
// It must never run outside of tests, and knows no rights but those that a test takes away.
package accesstest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
)

// Paths of the reviews that it answers.
const (
	whoPath    = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	mayPath    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	tokenPath  = "/apis/authentication.k8s.io/v1/tokenreviews"
	rightsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// Audience is that of the tokens which Review makes known.
const Audience = "heliostat"

// Account returns the token of the server's own account.
func Account() string {
	return JWT(map[string]any{"iss": "https://kubernetes", "aud": []string{"https://kubernetes"}})
}

// JWT returns a token that claims something, and that nobody has signed.
func JWT(claims map[string]any) string {
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err) // claims are texts, numbers and lists
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(text) + ".c2lnbmF0dXJl"
}

// Seen is a request that came.
type Seen struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
}

// Server is the stand-in.
type Server struct {
	*httptest.Server
	CAFile, TokenFile string

	rest  http.HandlerFunc
	mutex sync.Mutex
	// owners are those of tokens, audienced those of tokens for the server's own audience.
	owners, audienced map[string]string
	// denied are tokens, and names of users.
	denied map[string]bool
	broken bool
	seen   []Seen
}

// Start starts a server that knows one token, of somebody, and ends with the test. What is no review goes to rest, after
// its token was looked at.
func Start(t testing.TB, token, owner string, rest http.HandlerFunc) *Server {
	t.Helper()
	dir := t.TempDir()
	s := &Server{
		rest: rest, owners: map[string]string{token: owner, Account(): "the-server"}, audienced: map[string]string{}, denied: map[string]bool{},
		CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "token"),
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for file, text := range map[string][]byte{s.CAFile: text, s.TokenFile: []byte(Account())} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Options returns what the product is told of the server, for the mode PassThrough.
func (s *Server) Options(now clock.PassiveClock) access.Options {
	return access.Options{
		Address: s.URL, CAFile: s.CAFile, TokenFile: s.TokenFile, Clock: now, Scheme: scheme.Scheme, Identity: access.Identity{Mode: access.PassThrough},
	}
}

// Kubernetes returns the server as the product knows it.
func (s *Server) Kubernetes(t testing.TB, now clock.PassiveClock) *access.Kubernetes {
	t.Helper()
	kubernetes, err := access.New(s.Options(now))
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes
}

// Review makes a token known as one for the server's own audience.
func (s *Server) Review(token, owner string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.audienced[token] = owner
}

// Know makes one more token known.
func (s *Server) Know(token, owner string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.owners[token] = owner
}

// Withdraw makes a token unknown.
func (s *Server) Withdraw(token string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.owners, token)
	delete(s.audienced, token)
}

// Deny takes all rights away, of the owner of a token or of a user by name.
func (s *Server) Deny(tokenOrName string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.denied[tokenOrName] = true
}

// Break makes the server fail at reviews, or heals it.
func (s *Server) Break(broken bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.broken = broken
}

// All returns the requests that came.
func (s *Server) All() []Seen {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.seen)
}

// Seen returns the requests that came and are no reviews.
func (s *Server) Seen() []Seen {
	reviews := []string{whoPath, mayPath, tokenPath, rightsPath}
	return slices.DeleteFunc(s.All(), func(one Seen) bool { return slices.Contains(reviews, one.Path) })
}

// Reviews returns how many reviews came.
func (s *Server) Reviews() int { return len(s.All()) - len(s.Seen()) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mutex.Lock()
	s.seen = append(s.seen, Seen{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: string(body)})
	owner, known := s.owners[token]
	if as := r.Header.Get("Impersonate-User"); as != "" && token == Account() {
		owner = as
	}
	denied, broken := s.denied[token] || s.denied[owner], s.broken
	s.mutex.Unlock()
	switch {
	case err != nil:
		return
	case broken && slices.Contains([]string{whoPath, mayPath, rightsPath, tokenPath}, r.URL.Path):
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case !known:
		fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case s.review(w, r, token, review{owner, denied, body}):
	case denied:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case isOwnList(r, token):
		list(w, r)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.rest(w, r)
	}
}

// review is what is known of the sender of a review, and its body.
type review struct {
	owner  string
	denied bool
	body   []byte
}

// review answers a request that is a review, and reports whether it is one.
func (s *Server) review(w http.ResponseWriter, r *http.Request, token string, of review) bool {
	isOwn := token == Account()
	switch {
	case r.URL.Path == whoPath:
		say(w, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: of.owner}},
		})
	case r.URL.Path == mayPath:
		say(w, &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !of.denied},
		})
	case r.URL.Path == tokenPath && isOwn:
		s.reviewToken(w, of.body)
	case r.URL.Path == rightsPath && isOwn:
		s.reviewRights(w, of.body)
	default:
		return false
	}
	return true
}

// isOwnList reports whether a request is one by which the server reads objects as itself.
func isOwnList(r *http.Request, token string) bool {
	isItself := token == Account() && r.Header.Get("Impersonate-User") == ""
	return isItself && r.Method == http.MethodGet && lists[path.Base(r.URL.Path)] != ""
}

// Decode reads an object as a client sends it, in any form that Kubernetes knows.
func Decode(body []byte, into runtime.Object) error {
	_, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	if err == nil {
		into.GetObjectKind().SetGroupVersionKind(*kind) // what it is answered with says so as well
	}
	return err
}

// lists are what the server reads by itself, with the kinds of their lists.
var lists = map[string]string{
	"computeclusters": "ComputeClusterList", "clusterjobs": "ClusterJobList", "clusterjobschedules": "ClusterJobScheduleList", "clusterservices": "ClusterServiceList", "pods": "PodList",
}

// list answers the server's own account: there is nothing, and nothing comes.
func list(w http.ResponseWriter, r *http.Request) {
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") == "true": // as an API server that cannot
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case query.Get("watch") == "true":
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush() // who asks and goes needs no answer
		<-r.Context().Done()
	default:
		version := "heliostat.dev/v1beta1"
		if path.Base(r.URL.Path) == "pods" {
			version = "v1"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // who asks and goes needs no answer
			"kind": lists[path.Base(r.URL.Path)], "apiVersion": version, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{},
		})
	}
}

// reviewToken says whose a token is.
func (s *Server) reviewToken(w http.ResponseWriter, body []byte) {
	review := &authenticationv1.TokenReview{}
	if Decode(body, review) != nil || len(review.Spec.Audiences) != 1 {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	s.mutex.Lock()
	owner, known := s.audienced[review.Spec.Token]
	s.mutex.Unlock()
	if known && review.Spec.Audiences[0] == Audience {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{
			Username: owner, UID: "the-uid", Groups: []string{"the-groups"}, Extra: map[string]authenticationv1.ExtraValue{"the": {"extra"}},
		}}
	}
	say(w, review)
}

// reviewRights says what a user may do.
func (s *Server) reviewRights(w http.ResponseWriter, body []byte) {
	review := &authorizationv1.SubjectAccessReview{}
	if Decode(body, review) != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	s.mutex.Lock()
	review.Status.Allowed = !s.denied[review.Spec.User]
	s.mutex.Unlock()
	say(w, review)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusUnauthorized {
		w.Header().Set("Connection", "close") // as an API server does, which ends the connection of all that share it
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(&metav1.Status{ // who asks and goes needs no answer
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
	})
}

func say(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(object) // who asks and goes needs no answer
}
