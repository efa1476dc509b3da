package access_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// impersonating is a server in the mode Impersonate, with an issuer.
type impersonating struct {
	*access.Kubernetes
	upstream *accesstest.Server
	issuer   *accesstest.Issuer
	now      *clocktesting.FakePassiveClock
}

func newImpersonating(t *testing.T, change func(*access.Identity)) *impersonating {
	t.Helper()
	i := &impersonating{
		upstream: accesstest.Start(t, "plain", "alice", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"}}`))
		}),
		issuer: accesstest.StartIssuer(t), now: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
	}
	identity := access.Identity{Mode: access.Impersonate, Audience: accesstest.Audience, Issuers: []access.Issuer{{
		URL: i.issuer.URL, Audience: "portal", UsernameClaim: "email", GroupsClaim: "groups", Prefix: new("sso:"), CertificateAuthority: i.issuer.Authority(),
	}}}
	if change != nil {
		change(&identity)
	}
	options := i.upstream.Options(i.now)
	options.Identity = identity
	i.Kubernetes = newKubernetes(t, options)
	return i
}

// claims are good ones, with some replaced; nil takes one away.
func (i *impersonating) claims(with map[string]any) map[string]any {
	all := map[string]any{
		"aud": []string{"portal", "other"}, "exp": i.now.Now().Add(time.Minute).Unix(), "email": "ana@example.com", "sub": "1", "groups": []string{"ml", "system:authenticated"},
	}
	maps.Copy(all, with)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

func (i *impersonating) token(t *testing.T, with map[string]any) string {
	t.Helper()
	return i.issuer.Token(t, i.claims(with))
}

func TestIssuer_TellsWhoItsTokensAreOf(t *testing.T) {
	i := newImpersonating(t, nil)
	for name, c := range map[string]struct {
		with map[string]any
		want authenticationv1.UserInfo
		err  error
	}{
		"a user with groups":    {nil, authenticationv1.UserInfo{Username: "sso:ana@example.com", Groups: []string{"sso:ml", "sso:system:authenticated", "system:authenticated"}}, nil},
		"one group":             {map[string]any{"groups": "ml"}, authenticationv1.UserInfo{Username: "sso:ana@example.com", Groups: []string{"sso:ml", "system:authenticated"}}, nil},
		"no group":              {map[string]any{"groups": nil}, authenticationv1.UserInfo{Username: "sso:ana@example.com", Groups: []string{"system:authenticated"}}, nil},
		"one audience":          {map[string]any{"aud": "portal", "groups": nil}, authenticationv1.UserInfo{Username: "sso:ana@example.com", Groups: []string{"system:authenticated"}}, nil},
		"a verified address":    {map[string]any{"email_verified": true, "groups": nil}, authenticationv1.UserInfo{Username: "sso:ana@example.com", Groups: []string{"system:authenticated"}}, nil},
		"an unverified address": {map[string]any{"email_verified": false}, authenticationv1.UserInfo{}, access.ErrUnverified},
		"an odd verification":   {map[string]any{"email_verified": "true"}, authenticationv1.UserInfo{}, access.ErrUnverified},
		"no name":               {map[string]any{"email": nil}, authenticationv1.UserInfo{}, access.ErrBadName},
		"a name of numbers":     {map[string]any{"email": 1}, authenticationv1.UserInfo{}, access.ErrBadName},
		"a name with a break":   {map[string]any{"email": "a\r\nImpersonate-Group: system:masters"}, authenticationv1.UserInfo{}, access.ErrBadName},
		"a name with a space":   {map[string]any{"email": "ana "}, authenticationv1.UserInfo{}, access.ErrBadName},
		"an empty group":        {map[string]any{"groups": []string{""}}, authenticationv1.UserInfo{}, access.ErrBadName},
		"another audience":      {map[string]any{"aud": "other"}, authenticationv1.UserInfo{}, access.ErrAudience},
		"no audience":           {map[string]any{"aud": nil}, authenticationv1.UserInfo{}, access.ErrAudience},
		"expired":               {map[string]any{"exp": i.now.Now().Unix() - 1}, authenticationv1.UserInfo{}, access.ErrExpired},
		"without an end":        {map[string]any{"exp": nil}, authenticationv1.UserInfo{}, access.ErrExpired},
		"not yet":               {map[string]any{"nbf": i.now.Now().Add(time.Hour).Unix()}, authenticationv1.UserInfo{}, access.ErrUnknownToken},
	} {
		caller, err := i.Identify(t.Context(), from(i.token(t, c.with)))
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(c.want, caller.User()); diff != "" || caller.Method() != access.MethodIssuer || caller.Issuer() != i.issuer.URL {
			t.Errorf("%s: by %s of %s %s", name, caller.Method(), caller.Issuer(), diff)
		}
	}
}

// TestIssuer_GivesNobodyANameOfKubernetes: without a prefix a claim could say anything.
func TestIssuer_GivesNobodyANameOfKubernetes(t *testing.T) {
	i := newImpersonating(t, func(identity *access.Identity) { identity.Issuers[0].Prefix = new("") })
	for _, with := range []map[string]any{
		{"email": "system:admin"}, {"email": "system:serviceaccount:kube-system:x"}, {"email": "system:"}, {"groups": []string{"ml", "system:masters"}}, {"groups": "system:unauthenticated"},
	} {
		if caller, err := i.Identify(t.Context(), from(i.token(t, with))); !errors.Is(err, access.ErrReservedName) {
			t.Errorf("%v is %v, %v", with, caller, err)
		}
	}
	if caller, err := i.Identify(t.Context(), from(i.token(t, nil))); err != nil || !slices.Equal(caller.User().Groups, []string{"ml", "system:authenticated"}) {
		t.Errorf("everybody's group: %v", err)
	}
}

func TestIssuer_BelievesItsOwnSignatureAlone(t *testing.T) {
	i := newImpersonating(t, nil)
	good := i.token(t, nil)
	parts := strings.Split(good, ".")
	other := accesstest.StartIssuer(t)
	forged := i.claims(map[string]any{"iss": i.issuer.URL})
	for name, text := range map[string]string{
		"another's":    other.Token(t, forged),
		"nobody's":     accesstest.JWT(forged),
		"cut":          parts[0] + "." + parts[1] + ".",
		"with a claim": parts[0] + "." + strings.Split(accesstest.JWT(i.claims(map[string]any{"iss": i.issuer.URL, "email": "eve"})), ".")[1] + "." + parts[2],
	} {
		if caller, err := i.Identify(t.Context(), from(text)); !errors.Is(err, access.ErrUnauthorized) {
			t.Errorf("%s: %v, %v", name, caller, err)
		}
		i.now.SetTime(i.now.Now().Add(time.Second)) // the issuer may be asked again
	}
	if _, err := i.Identify(t.Context(), from(other.Token(t, i.claims(nil)))); !errors.Is(err, access.ErrAudience) {
		t.Errorf("an issuer that is not known: %v", err)
	}
	if len(i.upstream.All()) > 0 {
		t.Errorf("the API server was asked: %v", i.upstream.All())
	}
}

// TestIssuer_IsAskedSeldom: its keys are kept, and garbage is no reason to ask each time.
func TestIssuer_IsAskedSeldom(t *testing.T) {
	i := newImpersonating(t, nil)
	identify := func() error {
		_, err := i.Identify(t.Context(), from(i.token(t, map[string]any{"jti": i.issuer.Asked(), "exp": i.now.Now().Add(time.Hour).Unix()})))
		return err
	}
	for range 5 {
		if err := identify(); err != nil {
			t.Fatal(err)
		}
	}
	if asked := i.issuer.Asked(); asked != 2 { // its description and its keys
		t.Errorf("five tokens made %d requests, want 2", asked)
	}
	i.now.SetTime(i.now.Now().Add(time.Second))
	forger := accesstest.StartIssuer(t)
	forger.Renew(t)
	for n := range 50 {
		_, err := i.Identify(t.Context(), from(forger.Token(t, i.claims(map[string]any{"iss": i.issuer.URL, "jti": n}))))
		if err == nil {
			t.Fatal("a forged token is believed")
		}
	}
	if asked := i.issuer.Asked(); asked > 4 {
		t.Errorf("garbage made %d requests within a second, want 2 more", asked-2)
	}
	if err := identify(); err != nil {
		t.Errorf("meanwhile: %v", err)
	}
	i.now.SetTime(i.now.Now().Add(time.Second))
	i.issuer.Renew(t)
	i.issuer.Break(true)
	if err := identify(); err == nil || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("an issuer that fails: %v", err)
	}
	i.issuer.Break(false)
	i.now.SetTime(i.now.Now().Add(time.Second))
	if err := identify(); err != nil {
		t.Errorf("a new key: %v", err)
	}
}

// serviceAccount is a token for the server's audience, that the API server knows as an account's.
func (i *impersonating) serviceAccount(name string) string {
	text := accesstest.JWT(map[string]any{"iss": "https://kubernetes", "aud": accesstest.Audience, "sub": name})
	i.upstream.Review(text, name)
	return text
}

func TestAudience_IsOfServiceAccountsAlone(t *testing.T) {
	i := newImpersonating(t, nil)
	caller, err := i.Identify(t.Context(), from(i.serviceAccount("system:serviceaccount:team-a:portal")))
	if err != nil {
		t.Fatal(err)
	}
	want := authenticationv1.UserInfo{
		Username: "system:serviceaccount:team-a:portal", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"},
	}
	if diff := cmp.Diff(want, caller.User()); diff != "" || caller.Method() != access.MethodAudience {
		t.Errorf("by %s %s", caller.Method(), diff)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"a user":               {i.serviceAccount("ana"), access.ErrNoAccount},
		"a user of Kubernetes": {i.serviceAccount("system:admin"), access.ErrNoAccount},
		"an odd account":       {i.serviceAccount("system:serviceaccount:a"), access.ErrNoAccount},
		"one that is unknown":  {accesstest.JWT(map[string]any{"aud": accesstest.Audience}), access.ErrUnknownToken},
		"one that has expired": {accesstest.JWT(map[string]any{"aud": accesstest.Audience, "exp": 1}), access.ErrExpired},
		"for the API server":   {accesstest.Account(), access.ErrAudience},
		"garbage":              {"plain", access.ErrUnknownToken},
	} {
		if _, err := i.Identify(t.Context(), from(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestMay_IsAboutTheWholeIdentity: the review has all that Kubernetes would judge by.
func TestMay_IsAboutTheWholeIdentity(t *testing.T) {
	i := newImpersonating(t, nil)
	caller, err := i.Identify(t.Context(), from(i.token(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.May(t.Context(), caller, watching); err != nil {
		t.Fatal(err)
	}
	seen := i.upstream.All()
	if len(seen) != 1 || seen[0].Header.Get("Authorization") != "Bearer "+accesstest.Account() || seen[0].Header.Get("Impersonate-User") != "" {
		t.Fatalf("the API server was asked %v", seen)
	}
	var review authorizationv1.SubjectAccessReview
	if err := accesstest.Decode([]byte(seen[0].Body), &review); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &watching, User: "sso:ana@example.com", Groups: []string{"sso:ml", "sso:system:authenticated", "system:authenticated"},
	}
	if diff := cmp.Diff(want, review.Spec); diff != "" {
		t.Error(diff)
	}
	i.upstream.Deny("sso:ana@example.com")
	if err := i.Confirm(t.Context(), caller, watching); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("no right: %v", err)
	}
}

// TestMay_EndsWithTheCredential: a review of rights alone does not say that an account or a token is no more.
func TestMay_EndsWithTheCredential(t *testing.T) {
	i := newImpersonating(t, nil)
	ana, err := i.Identify(t.Context(), from(i.token(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	text := i.serviceAccount("system:serviceaccount:team-a:portal")
	portal, err := i.Identify(t.Context(), from(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*access.Caller{ana, portal} {
		if err := i.May(t.Context(), one, watching); err != nil {
			t.Fatal(err)
		}
	}
	i.upstream.Withdraw(text)
	i.now.SetTime(i.now.Now().Add(10 * time.Second))
	for name, ask := range map[string]func() error{
		"May": func() error { return i.May(t.Context(), portal, watching) }, "Confirm": func() error { return i.Confirm(t.Context(), portal, watching) },
	} {
		if err := ask(); !errors.Is(err, access.ErrUnauthorized) {
			t.Errorf("an account that is no more: %s says %v", name, err)
		}
	}
	i.now.SetTime(i.now.Now().Add(50 * time.Second))
	if err := i.Confirm(t.Context(), ana, watching); !errors.Is(err, access.ErrExpired) {
		t.Errorf("a token that has expired: %v", err)
	}
	if err := fails(i.Transport(ana), request(t, i.upstream.URL)); !errors.Is(err, access.ErrExpired) {
		t.Errorf("a request with it: %v", err)
	}
}

// fails returns why a request has no answer.
func fails(transport http.RoundTripper, request *http.Request) error {
	answer, err := transport.RoundTrip(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	made, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// identityOf returns the headers of a request by which Kubernetes learns who it is of.
func identityOf(header http.Header) http.Header {
	found := http.Header{}
	for name, values := range header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			found[name] = values
		}
	}
	return found
}

// TestTransport_ActsForItsCallerAlone, whatever a request says.
func TestTransport_ActsForItsCallerAlone(t *testing.T) {
	i := newImpersonating(t, nil)
	plain := accesstest.Start(t, "a", "alice", i.upstream.Config.Handler.ServeHTTP)
	passing := plain.Kubernetes(t, i.now)
	alice := callerOf(t, passing, "a")
	ana := callerOf(t, i.Kubernetes, i.token(t, map[string]any{"groups": []string{"ml", "ops"}}))
	portal := callerOf(t, i.Kubernetes, i.serviceAccount("system:serviceaccount:team-a:portal"))
	own := "Bearer " + accesstest.Account()
	for name, c := range map[string]struct {
		transport http.RoundTripper
		at        *accesstest.Server
		want      http.Header
	}{
		"a token":           {passing.Transport(alice), plain, http.Header{"Authorization": {"Bearer a"}}},
		"a user":            {i.Transport(ana), i.upstream, http.Header{"Authorization": {own}, "Impersonate-User": {"sso:ana@example.com"}, "Impersonate-Group": {"sso:ml", "sso:ops"}}},
		"a service account": {i.Transport(portal), i.upstream, http.Header{"Authorization": {own}, "Impersonate-User": {"system:serviceaccount:team-a:portal"}}},
	} {
		sent := request(t, c.at.URL)
		for _, header := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes", "X-Remote-User", "X-Remote-Group", "X-Remote-Extra-A"} {
			sent.Header.Set(header, "canary")
		}
		sent.Header.Set("Authorization", "Bearer canary")
		answer, err := c.transport.RoundTrip(sent)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		seen := c.at.Seen()
		if diff := cmp.Diff(c.want, identityOf(seen[len(seen)-1].Header)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if sent.Header.Get("Impersonate-User") != "canary" {
			t.Errorf("%s: the request itself was changed", name)
		}
	}
}

// TestTransport_BlamesNoCallerForTheServersAccount: a 401 would send the caller for another token.
func TestTransport_BlamesNoCallerForTheServersAccount(t *testing.T) {
	i := newImpersonating(t, nil)
	ana := callerOf(t, i.Kubernetes, i.token(t, nil))
	i.upstream.Withdraw(accesstest.Account())
	if err := fails(i.Transport(ana), request(t, i.upstream.URL)); !errors.Is(err, access.ErrAccount) {
		t.Error(err)
	}
	if err := i.Confirm(t.Context(), ana, watching); !errors.Is(err, access.ErrAccount) || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("a review: %v", err)
	}
}

func TestObjects_AreReadAndWrittenAsTheCaller(t *testing.T) {
	i := newImpersonating(t, nil)
	caller, of := callerOf(t, i.Kubernetes, i.token(t, nil)), access.ObjectName{Resource: "clusterjobs", Namespace: "n", Name: "c"}
	if found, err := i.FindObject(t.Context(), caller, of); err != nil || found["kind"] != "ConfigMap" {
		t.Fatal(found, err)
	}
	if _, _, err := i.CreateObject(t.Context(), caller, of, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := i.PatchObject(t.Context(), caller, of, types.MergePatchType, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range i.upstream.All() {
		got = append(got, one.Method+" "+one.Path+" "+one.Header.Get("Impersonate-User")+" "+one.Header.Get("User-Agent"))
	}
	const who = " sso:ana@example.com heliostat-server"
	path := "/apis/heliostat.dev/v1beta1/namespaces/n/clusterjobs"
	want := []string{"GET " + path + "/c" + who, "POST " + path + who, "PATCH " + path + "/c" + who}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccount_ActsForNobody(t *testing.T) {
	i := newImpersonating(t, nil)
	made, err := i.Own()
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c"}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}); err == nil {
		t.Log("the stand-in has no discovery, and still answers")
	}
	for _, one := range i.upstream.All() {
		if diff := cmp.Diff(http.Header{"Authorization": {"Bearer " + accesstest.Account()}}, identityOf(one.Header)); diff != "" || one.Header.Get("User-Agent") != "heliostat-server" {
			t.Errorf("%v %s", one.Header, diff)
		}
	}
	if len(i.upstream.All()) == 0 {
		t.Error("the API server got nothing")
	}
}
