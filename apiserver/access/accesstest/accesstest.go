// Package accesstest stands in for an API server, as far as tests of the server need one.
//
// In: tokens with the names of their owners, and what it answers beside reviews. Out: an address with TLS, the file
// with its authority, and every request that came, with its headers.
//
// It must never run outside of tests, and knows no rights but those that a test takes away.
package accesstest

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/access"
)

// Paths of the reviews that it answers.
const (
	whoPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	mayPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// Seen is a request that came.
type Seen struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
}

// Server is the stand-in.
type Server struct {
	*httptest.Server
	CAFile string

	rest   http.HandlerFunc
	mutex  sync.Mutex
	owners map[string]string
	denied map[string]bool
	broken bool
	seen   []Seen
}

// Start starts a server that knows one token, of somebody, and ends with the test. What is no review goes to rest, after
// its token was looked at.
func Start(t testing.TB, token, owner string, rest http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{rest: rest, owners: map[string]string{token: owner}, denied: map[string]bool{}, CAFile: filepath.Join(t.TempDir(), "ca.crt")}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(s.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Kubernetes returns the server as the product knows it.
func (s *Server) Kubernetes(t testing.TB, now clock.PassiveClock) *access.Kubernetes {
	t.Helper()
	kubernetes, err := access.New(s.URL, s.CAFile, now)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes
}

// Withdraw makes a token unknown.
func (s *Server) Withdraw(token string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.owners, token)
}

// Deny takes all rights of a token's owner away.
func (s *Server) Deny(token string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.denied[token] = true
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
	return slices.DeleteFunc(s.All(), func(one Seen) bool { return one.Path == whoPath || one.Path == mayPath })
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
	denied, broken := s.denied[token], s.broken
	s.mutex.Unlock()
	switch {
	case err != nil:
		return
	case broken && r.URL.Path == mayPath:
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case !known:
		fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case r.URL.Path == whoPath:
		say(w, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: owner}},
		})
	case r.URL.Path == mayPath:
		say(w, &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !denied},
		})
	case denied:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.rest(w, r)
	}
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
