package app

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// certify writes a certificate for loopback that signs itself, and its key.
func certify(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.key": {Type: "PRIVATE KEY", Bytes: secret}, "tls.crt": {Type: "CERTIFICATE", Bytes: certificate}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// running is a whole server, and how it ends.
type running struct {
	Config
	dir   string
	end   context.CancelFunc
	ended chan error
}

func run(t *testing.T, rest http.HandlerFunc) *running {
	t.Helper()
	return runWith(t, rest, func(*Config) {})
}

func runWith(t *testing.T, rest http.HandlerFunc, change func(*Config)) *running {
	t.Helper()
	upstream := accesstest.Start(t, "alice-token", "alice", rest)
	s := &running{dir: t.TempDir(), ended: make(chan error, 1)}
	certify(t, s.dir, "first")
	s.Config = Config{
		Address: freeAddress(t), MetricsAddress: freeAddress(t), HealthAddress: freeAddress(t), APIServer: upstream.URL, CAFile: upstream.CAFile, TokenFile: upstream.TokenFile,
		CertFile: filepath.Join(s.dir, "tls.crt"), KeyFile: filepath.Join(s.dir, "tls.key"), Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{},
	}
	change(&s.Config)
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	go func() { s.ended <- Run(ctx, s.Config) }()
	s.until(t, "the server", func() bool { return s.name() == "first" })
	return s
}

func (s *running) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

// name is that of the certificate which the server shows.
func (s *running) name() string {
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).Dial("tcp", s.Address)
	if err != nil {
		return ""
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

func (s *running) get(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice-token")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport.RoundTrip(request)
}

// TestRun_EndsWatchesAndThenItself: a rolling update looks like an API server that ends a watch.
func TestRun_EndsWatchesAndThenItself(t *testing.T) {
	s := run(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	answer, err := s.get(t, "https://"+s.Address+at+"?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	reader := bufio.NewReader(answer.Body)
	if line, err := reader.ReadString('\n'); line != "{}\n" {
		t.Fatalf("the first event is %q, %v", line, err)
	}
	began := time.Now()
	s.end()
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("the watch ends with %q, %v", rest, err)
	}
	if err := <-s.ended; err != nil || time.Since(began) > endWithin {
		t.Errorf("the server ends after %v: %v", time.Since(began), err)
	}
}

// TestRun_ReadsItsCertificateAgain for the next connection. One that is there goes on.
func TestRun_ReadsItsCertificateAgain(t *testing.T) {
	s := run(t, fine)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	shown := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer alice-token")
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("it is answered with %s, %v", answer.Status, err)
		}
		_ = answer.Body.Close()
		return answer.TLS.PeerCertificates[0].Subject.CommonName
	}
	before := shown()
	certify(t, s.dir, "second")
	s.until(t, "second certificate", func() bool { return s.name() == "second" })
	if after := shown(); before != "first" || after != "first" {
		t.Errorf("a connection has the certificate %q, and then %q", before, after)
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}}).Dial("tcp", s.Address); err == nil {
			_ = connection.Close()
			t.Errorf("%s is spoken", tls.VersionName(version))
		}
	}
	if answer, err := s.get(t, "http://"+s.Address+at); err == nil {
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", answer.Status)
		}
	}
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// documented are the rows of the page: a metric's name, or the beginning of names and a star.
var documented = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+\\*?)`")

// TestRun_ServesWhatIsDocumented on its plain ports, and nothing of it to callers.
func TestRun_ServesWhatIsDocumented(t *testing.T) {
	clusters := freeAddress(t)
	s := runWith(t, fine, func(cfg *Config) {
		cfg.Dashboards = Dashboards{Address: clusters, URL: &url.URL{Scheme: "https", Host: clusters}, PageURL: &url.URL{Scheme: "https", Host: cfg.Address}, MaxUpload: 1}
	})
	read := func(url string) (int, string) {
		answer, err := s.get(t, url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	s.until(t, "objects", func() bool {
		code, _ := read("http://" + s.HealthAddress + "/readyz")
		return code == 200
	})
	for address, want := range map[string]int{
		"https://" + clusters + "/team/none/": 403, "https://" + clusters + "/metrics": 404,
		"https://" + s.Address + at: 200, "https://" + s.Address + "/metrics": 404, "https://" + s.Address + "/readyz": 404,
		"http://" + s.HealthAddress + "/healthz": 200, "http://" + s.HealthAddress + "/readyz": 200, "http://" + s.HealthAddress + "/metrics": 404,
		"http://" + s.MetricsAddress + at: 404, "http://" + s.MetricsAddress + "/debug/pprof/": 404,
	} {
		if code, _ := read(address); code != want {
			t.Errorf("%s is %d, want %d", address, code, want)
		}
	}
	_, text := read("http://" + s.MetricsAddress + "/metrics")
	compareMetrics(t, text)
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// compareMetrics holds what is served against the rows of the page.
func compareMetrics(t *testing.T, text string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	unseen := map[string]bool{}
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		unseen[row[1]] = true
	}
	rows := slices.Collect(maps.Keys(unseen))
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[1] != "TYPE" {
			continue
		}
		at := slices.IndexFunc(rows, func(row string) bool {
			prefix, star := strings.CutSuffix(row, "*")
			return row == fields[2] || star && strings.HasPrefix(fields[2], prefix)
		})
		if at < 0 {
			t.Errorf("docs/server.md lacks the %s %s", fields[3], fields[2])
			continue
		}
		delete(unseen, rows[at])
	}
	for row := range unseen {
		t.Errorf("docs/server.md has %s, and the server has not", row)
	}
}

func TestRun_RefusesWhatCannotServe(t *testing.T) {
	s := run(t, fine)
	for name, change := range map[string]func(*Config){
		"an address that is taken": func(*Config) {},
		"no certificate":           func(c *Config) { c.CertFile += "x" },
		"no authority":             func(c *Config) { c.CAFile += "x" },
		"no account":               func(c *Config) { c.TokenFile += "x" },
		"an address that is none":  func(c *Config) { c.APIServer = "http://a" },
	} {
		cfg := s.Config
		if change(&cfg); Run(t.Context(), cfg) == nil {
			t.Errorf("%s is fine", name)
		}
	}
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
