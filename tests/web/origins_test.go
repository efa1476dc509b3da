package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/signin"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// victim and evil are clusters: a user has opened both, and the owner of one of them writes its page.
const (
	victim = "victim"
	evil   = "evil"
)

// origins are the page and the dashboards in processes of their own, before heads that keep what reaches them.
type origins struct {
	*headstest.Site
	t       *testing.T
	network *headstest.Network
	keys    *session.Keys
	log     *slog.Logger

	mu   sync.Mutex
	seen []string
}

// way is one way to separate origins, by its addresses.
type way struct {
	Page   string `json:"page"`
	Victim string `json:"victim"`
	Evil   string `json:"evil"`
}

// TestOrigins opens dashboards in a browser, on each of the three ways to separate origins, and holds what passes there
// against the table of docs/dashboards-setup.md. In one more, users sign in at an issuer of OpenID Connect.
func TestOrigins(t *testing.T) {
	token := accesstest.JWT(map[string]any{"exp": time.Now().Add(time.Hour).Unix()})
	o := &origins{
		Site: headstest.New(), t: t, network: headstest.NewNetwork(), log: slog.New(slog.DiscardHandler),
	}
	tokens := users{kubernetes: accesstest.Start(t, token, "alice", nil).Kubernetes(t, clock.RealClock{}),
		identity: access.Identity{Mode: access.PassThrough}}
	file := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(file, []byte(strings.Repeat("k", 32)), 0o600))
	var err error
	o.keys, err = session.ReadKeys(file, clock.RealClock{}, o.log)
	must(t, err)
	for i, name := range []string{victim, evil} {
		ip := fmt.Sprintf("10.1.0.%d", i+1)
		o.PutPod(headstest.Head(o.PutCluster(name, nil), 1, ip))
		head := &http.Server{Handler: o.head(name), ReadHeaderTimeout: time.Minute}
		listener := o.network.Listen(ip + ":8265")
		go func() { _ = head.Serve(listener) }()
		t.Cleanup(func() { _ = head.Close() })
	}
	control := httptest.NewServer(http.HandlerFunc(o.tell))
	t.Cleanup(control.Close)
	page := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>other</title>")
	}
	_, stranger := o.serve("stranger.example.test", http.HandlerFunc(page))
	_, mail := o.serve("mail.another.test", http.HandlerFunc(page)) // another site, to which no strict cookie belongs
	settings, err := json.Marshal(map[string]any{
		"token": token, "control": control.URL, "stranger": stranger, "mail": mail,
		"ways": map[string]way{
			"port": o.open("page.example.test", "", tokens), "host": o.open("dashboards.example.test", "", tokens),
			"wildcard": o.open("ray.example.test", "ray.example.test", tokens), "issuer": o.openIssuer(),
		},
	})
	must(t, err)
	command := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "origins.mjs")
	command.Env = append(os.Environ(), "HELIOSTAT_BED="+string(settings))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	must(t, command.Run())
}

// serve serves a host name on a port of its own, until the test ends.
func (o *origins) serve(host string, handler http.Handler) (port, origin string) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	o.t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	must(o.t, err)
	return at.Port(), "https://" + host + ":" + at.Port()
}

// users are those who sign in on a page, and where their rights are looked up.
type users struct {
	kubernetes *access.Kubernetes
	identity   access.Identity
	config     signin.Config
}

// openIssuer serves the page and the dashboards to users of an issuer, whom the server impersonates.
func (o *origins) openIssuer() way {
	issuer, prefix := accesstest.StartIssuer(o.t), "sso:"
	of := users{
		identity: access.Identity{Mode: access.Impersonate, Audience: accesstest.Audience, Issuers: []access.Issuer{{
			URL: issuer.URL, Audience: "portal", UsernameClaim: "sub", Prefix: &prefix, CertificateAuthority: issuer.Authority()}}},
		config: signin.Config{OIDC: &signin.OIDC{Name: "Sunrise", Issuer: issuer.URL, ClientID: "portal",
			ClientSecretFile: filepath.Join(o.t.TempDir(), "secret"), Scopes: []string{"openid"},
			CertificateAuthority: issuer.Authority()}},
	}
	must(o.t, os.WriteFile(of.config.OIDC.ClientSecretFile, []byte("the-client-secret"), 0o600))
	options := accesstest.Start(o.t, "unused", "nobody", nil).Options(clock.RealClock{})
	options.Identity = of.identity
	var err error
	of.kubernetes, err = access.New(options)
	must(o.t, err)
	found := o.open("page.example.test", "", of)
	claims := func() map[string]any {
		return map[string]any{"sub": "ana", "exp": time.Now().Add(time.Hour).Unix()}
	}
	issuer.Register(accesstest.Client{ID: "portal", Secret: "the-client-secret",
		ReturnTo: found.Page + "/session/oidc/callback", Claims: claims})
	return found
}

// open serves the page and the dashboards in one way.
func (o *origins) open(host, wildcard string, of users) way {
	var onPage, onDashboards http.Handler
	late := func(to *http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { (*to).ServeHTTP(w, r) }
	}
	_, page := o.serve("page.example.test", late(&onPage))
	port, shared := o.serve(host, late(&onDashboards))
	if wildcard != "" {
		wildcard += ":" + port
	}
	at, err := signin.ParseOrigins(page, shared, wildcard)
	must(o.t, err)
	signInPage, signInDashboards, err := signin.New(signin.Needs{
		Origins: at, Config: of.config, Identity: of.identity, Keys: o.keys, Access: of.kubernetes,
		Clock: clock.RealClock{}, Log: o.log,
	})
	must(o.t, err)
	site := route.Site{Wildcard: wildcard, Labels: o}
	own, err := url.Parse(shared)
	must(o.t, err)
	ctx, end := context.WithCancel(o.t.Context())
	made := proxy.New(ctx, proxy.Needs{
		Access: of.kubernetes, Sessions: signInDashboards, SignIn: signInDashboards, Origin: own, Site: site, PageURL: page + "/",
		Heads:     heads.New(heads.Settings{Clusters: o, Reader: o, Options: headclient.Options{Connect: o.network.Connect}}),
		MaxUpload: 1 << 20, MaxSockets: 10, Clock: clock.RealClock{}, Log: o.log,
	})
	o.t.Cleanup(func() {
		end()
		made.Wait()
	})
	found := way{Page: page, Victim: site.AddressOf(shared, route.Cluster, headstest.Namespace, victim),
		Evil: site.AddressOf(shared, route.Cluster, headstest.Namespace, evil)}
	onDashboards = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { made.Serve(w, r, &proxy.Request{}) })
	onPage = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !signin.Owns(r.URL.Path) {
			_, _ = fmt.Fprintf(w, `<!doctype html><title>page</title><a id="victim" href=%q>a</a><a id="evil" href=%q>b</a>`,
				found.Victim, found.Evil)
			return
		}
		if err := signInPage.Serve(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return found
}

// FindLabel implements route.Labels.
func (o *origins) FindLabel(label string) (kind route.Kind, namespace, name string, found bool) {
	for _, one := range []string{victim, evil} {
		if label == naming.ClusterHost(headstest.Namespace, one) {
			return route.Cluster, headstest.Namespace, one, true
		}
	}
	return "", "", "", false
}

// head answers as a cluster's head, and keeps what reached it.
func (o *origins) head(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.seen = append(o.seen, name+" "+r.Method+" "+r.URL.String())
		o.mu.Unlock()
		switch {
		case r.Header.Get("Upgrade") != "":
			connection, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			_ = connection.Write(r.Context(), websocket.MessageText, []byte("a line of "+name))
			_ = connection.Close(websocket.StatusNormalClosure, "")
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><h1>%s</h1>`, name, name)
		default:
			_, _ = io.WriteString(w, "done by "+name)
		}
	})
}

// tell says what reached heads.
func (o *origins) tell(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = io.WriteString(w, strings.Join(o.seen, "\n"))
}
