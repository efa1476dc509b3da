package away_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// serve starts a server with TLS, and returns it as a user names it.
func serve(t *testing.T, answer http.HandlerFunc) console.Server {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return console.Server{URL: server.URL + "/", Authority: file}
}

// ofToken is a kubeconfig with a token for an API server that the server is not.
func ofToken() *rest.Config {
	return &rest.Config{Host: "https://10.0.0.1:6443", BearerToken: "of-anna", TLSClientConfig: rest.TLSClientConfig{CAFile: "/none"}}
}

func train() away.Output {
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"}}
	return away.Output{Job: job, Attempt: v1beta1.JobAttempt{Number: 2}, Offset: 7, IsFollowed: true}
}

func TestNewServer_TakesTokensAlone(t *testing.T) {
	at := serve(t, func(http.ResponseWriter, *http.Request) {})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config rest.Config
		at     console.Server
		code   int
		says   string
	}{
		"a token":               {rest.Config{BearerToken: "x"}, at, outcome.Done, ""},
		"a file with a token":   {rest.Config{BearerTokenFile: file}, at, outcome.Done, ""},
		"a client certificate":  {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, at, outcome.Refused, "kubectl create token NAME"},
		"a name and a password": {rest.Config{Username: "a", Password: "b"}, at, outcome.Refused, "the server accepts tokens"},
		"a certificate, and a token of the environment": {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}},
			console.Server{URL: at.URL, Token: "y"}, outcome.Done, ""},
		"somebody else":        {rest.Config{BearerToken: "x", Impersonate: rest.ImpersonationConfig{UserName: "bob"}}, at, outcome.Refused, "leave out --as"},
		"no encryption":        {rest.Config{BearerToken: "x"}, console.Server{URL: "http://example.com"}, outcome.Refused, "https://"},
		"on this machine":      {rest.Config{BearerToken: "x"}, console.Server{URL: "http://127.0.0.1:1"}, outcome.Done, ""},
		"no address":           {rest.Config{BearerToken: "x"}, console.Server{URL: "heliostat"}, outcome.Usage, "write https://HOST"},
		"no file of authority": {rest.Config{BearerToken: "x"}, console.Server{URL: at.URL, Authority: "/none/ca"}, outcome.Usage, "/none/ca"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := away.NewServer(&c.config, c.at)
			if outcome.Code(err) != c.code || c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("it ends with %d: %v", outcome.Code(err), err)
			}
		})
	}
}

func TestServer_GivesTheTokenOfAPlugin(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"fresh\"}}'\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var sent string
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Authorization") })
	config := &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: plugin, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	server, err := away.NewServer(config, at)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := server.Token(t.Context()); err != nil || token != "fresh" {
		t.Errorf("the token is %q, %v", token, err)
	}
	if err := server.ReadOutput(t.Context(), train(), io.Discard); err != nil || sent != "Bearer fresh" {
		t.Errorf("it sends %q: %v", sent, err)
	}
}

func TestServer_ReadsAnOutputFromAnOffset(t *testing.T) {
	var asked string
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String() + " " + r.Header.Get("Authorization")
		fmt.Fprint(w, "\x00 as it is\n")
	})
	server, err := away.NewServer(ofToken(), at)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := server.ReadOutput(t.Context(), train(), &out); err != nil || out.String() != "\x00 as it is\n" {
		t.Errorf("it prints %q: %v", out.String(), err)
	}
	if want := "/v1/namespaces/team-a/jobs/train/log?attempt=2&follow=true&offset=7 Bearer of-anna"; asked != want {
		t.Errorf("it asks for %s", asked)
	}
}

func TestServer_ReadsEachReplica(t *testing.T) {
	const list = `{"deployments": [{"cluster": "c", "application": "a", "name": "Model"}, {"cluster": "c", "application": "a", "name": "Sleeps"}], "replicas": [{"cluster": "c", "application": "a", "deployment": "Model", "id": "%s", "hasLog": true}, {"id": "starts", "hasLog": false}]}`
	for id, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
		out    string
	}{
		"r1":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "its log\n") }, nil, "its log\n"},
		"rotated": {refuse(409, `{"reason":"OutputShorter","detail":"it has 3 bytes"}`), away.ErrLogShorter, ""},
		"gone":    {refuse(404, `{"reason":"OutputGone","detail":"it is gone"}`), away.ErrLogGone, ""},
		"left":    {refuse(404, `{"reason":"NotFound","detail":"no such replica"}`), away.ErrLogGone, ""},
	} {
		at := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.String() {
			case "/v1/namespaces/team-a/services/translate/replicas":
				fmt.Fprintf(w, list, id)
			case "/v1/namespaces/team-a/services/translate/replicas/" + id + "/log?offset=7":
				c.answer(w, r)
			default:
				t.Errorf("it asks for %s", r.URL)
			}
		})
		server, err := away.NewServer(ofToken(), at)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		var out bytes.Buffer
		service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "translate"}}
		deployments, err := server.EachReplica(t.Context(), service, func(one heads.Replica, read away.ReadLogFrom) error {
			seen = append(seen, one.Cluster+"/"+one.Application+"/"+one.Deployment+"/"+one.ID)
			return read(t.Context(), 7, &out)
		})
		if !errors.Is(err, c.want) || out.String() != c.out || !slices.Equal(seen, []string{"c/a/Model/" + id}) {
			t.Errorf("%s: it prints %q of %v: %v", id, out.String(), seen, err)
		}
		if err == nil && (len(deployments) != 2 || len(deployments[0].Replicas) != 1 || deployments[1].Name != "Sleeps" || len(deployments[1].Replicas) != 0) {
			t.Errorf("%s: the deployments are %+v", id, deployments)
		}
	}
}

func TestServer_ReadsEachRound(t *testing.T) {
	const job, of = "/v1/namespaces/team-a/jobs/train/", "attempt=2&offset=7&older="
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.String() {
		case job + "rounds?attempt=2&process=worker%2F3":
			fmt.Fprint(w, `{"rounds": [{"number": 1, "hasOlder": true}, {"number": 2, "hasOlder": false}], "silentNodes": 4, "unaskedNodes": 2}`)
		case job + "log?" + of + "true&process=worker%2F3&round=1":
			fmt.Fprint(w, "older\n")
		case job + "log?" + of + "false&process=worker%2F3&round=2":
			refuse(409, `{"reason":"OutputShorter","detail":"it has 3 bytes"}`)(w, r)
		default:
			t.Errorf("it asks for %s", r.URL)
		}
	})
	server, err := away.NewServer(ofToken(), at)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	process := away.Process{Job: train().Job, Attempt: train().Attempt, Name: "worker/3"}
	err = server.ReadRounds(t.Context(), process, func(found heads.Rounds, read away.ReadRound) error {
		rounds := found.All
		if found.Silent != 4 || found.Unasked != 2 || len(rounds) != 2 {
			t.Fatalf("the rounds are %+v", found)
		}
		return errors.Join(read(t.Context(), rounds[0], rounds[0].HasOlder, 7, &out), read(t.Context(), rounds[1], rounds[1].HasOlder, 7, &out))
	})
	if !errors.Is(err, away.ErrLogShorter) || out.String() != "older\n" {
		t.Errorf("it prints %q: %v", out.String(), err)
	}
}

func TestServer_SaysWhyThereIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		code      int
		isPassing bool
		says      string
	}{
		"no token":   {refuse(401, `{"detail":"the token has expired","remedy":"get another one"}`), outcome.Refused, false, "get another one; or set HELIOSTAT_TOKEN"},
		"no right":   {refuse(403, `{"detail":"anna cannot get clusterjobs/log"}`), outcome.Refused, false, "anna cannot get clusterjobs/log"},
		"no job":     {refuse(404, `{"detail":"there is no such job"}`), outcome.Usage, false, "there is no such job"},
		"no output":  {refuse(409, `{"detail":"it is gone"}`), outcome.Refused, false, "it is gone"},
		"too much":   {refuse(429, `{"detail":"too much at once"}`), outcome.Failed, true, "too much at once"},
		"away":       {refuse(503, `{"detail":"the head starts"}`), outcome.Failed, true, "the head starts"},
		"no server":  {refuse(404, `<html>`), outcome.Usage, false, "check --server"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/else", http.StatusFound) }, outcome.Usage, false, "302"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush() // so that the answer begins
			panic(http.ErrAbortHandler)
		}, outcome.Failed, true, "read the output of job/train"},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := away.NewServer(ofToken(), serve(t, c.answer))
			if err != nil {
				t.Fatal(err)
			}
			err = server.ReadOutput(t.Context(), train(), io.Discard)
			if outcome.Code(err) != c.code || away.IsPassing(err) != c.isPassing || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("it ends with %d, passing is %v: %v", outcome.Code(err), away.IsPassing(err), err)
			}
			if strings.Contains(fmt.Sprint(err), "of-anna") {
				t.Errorf("the token is in %v", err)
			}
		})
	}
}

// refuse answers with a code and a text.
func refuse(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	}
}

func TestServer_TrustsItsAuthorityAlone(t *testing.T) {
	at := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it is asked") })
	server, err := away.NewServer(ofToken(), console.Server{URL: at.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = server.ReadOutput(t.Context(), train(), io.Discard)
	if outcome.Code(err) != outcome.Refused || away.IsPassing(err) || !strings.Contains(fmt.Sprint(err), "--server-ca FILE") {
		t.Errorf("it ends with %d: %v", outcome.Code(err), err)
	}
}

func TestServer_CallsAService(t *testing.T) {
	var at console.Server
	dashboard := "services/team-a/translate/"
	at = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/namespaces/team-a/services/translate" {
			fmt.Fprintf(w, `{"dashboard": %q}`, dashboard)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Key"), body)
	})
	service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "translate"}}
	call := func(header, value string) (string, error) {
		server, err := away.NewServer(ofToken(), at)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodPost, "https://inside:8000/v1?x=%2F", strings.NewReader("text"))
		request.RequestURI = ""
		request.Header.Set(header, value)
		answer, err := server.Call(t.Context(), service, request)
		if err != nil {
			return "", err
		}
		body, readErr := io.ReadAll(answer.Body)
		return string(body), errors.Join(readErr, answer.Body.Close())
	}
	if _, err := call("X-Key", "a"); outcome.Code(err) != outcome.Refused || !strings.Contains(err.Error(), "serves no dashboards") {
		t.Errorf("without an address of the service: %v", err)
	}
	dashboard = at.URL + dashboard
	said, err := call("X-Key", "a")
	if want := "POST /services/team-a/translate/v1?x=%2F Bearer of-anna a text"; err != nil || said != want {
		t.Errorf("the service gets %q: %v", said, err)
	}
	if _, err := call("Authorization", "Bearer other"); outcome.Code(err) != outcome.Refused {
		t.Errorf("with a credential for the service: %v", err)
	}
	dashboard = "http://dashboards.example.com/"
	if _, err := call("X-Key", "a"); outcome.Code(err) != outcome.Refused {
		t.Errorf("a service in clear text: %v", err)
	}
}
