package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// stopLimit is how long a program may take to end by itself.
const stopLimit = 30 * time.Second

// process is a program that was started. It ends with this one, however that ends.
type process struct {
	*exec.Cmd
	name  string
	ended chan struct{}
}

// startProcess starts a program with its output in a file of its own.
func (w *world) startProcess(name string, args ...string) (*process, error) {
	out, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	p := &process{Cmd: exec.Command(filepath.Join("bin", name), args...), name: name, ended: make(chan struct{})}
	p.Stdout, p.Stderr = out, out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.Wait() // by a signal
		close(p.ended)
	}()
	return p, nil
}

// stop tells the program to end, and waits until it has.
func (p *process) stop() error {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopLimit):
		_ = p.Process.Kill()
		<-p.ended
		return fmt.Errorf("stop %s: it had not ended after %v", p.name, stopLimit)
	}
}

// end is where callers ask: the server, or the API server itself. Callers speak HTTP/2 unless isHTTP1 holds.
type end struct {
	url       string
	authority []byte
	isHTTP1   bool
}

// caller returns a client with connections of its own, as each user has.
func (e end) caller(token string) (*caller, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(e.authority) {
		return nil, errors.New("read an authority: it holds no certificate")
	}
	return &caller{url: e.url, token: token, Client: http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: !e.isHTTP1,
	}}}, nil
}

// server is the server for portals as it runs.
type server struct {
	*process
	end
}

// startServer starts the server as the chart does, with the rights of its account, and waits until it has read everything.
func (w *world) startServer(ctx context.Context) (*server, error) {
	var addresses [2]string
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		addresses[i] = listener.Addr().String()
		_ = listener.Close() // nothing came
	}
	token, err := w.tokenOf(ctx, live.ReleaseNamespace, live.ReleaseName+"-server")
	if err != nil {
		return nil, err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	at := func(name string) string { return filepath.Join(w.dir, name) }
	for name, text := range map[string][]byte{"token": []byte(token), "tls.crt": certificate, "tls.key": key, "api-server.crt": w.authority} {
		if err := os.WriteFile(at(name), text, 0o600); err != nil {
			return nil, fmt.Errorf("write a file of the server: %w", err)
		}
	}
	p, err := w.startProcess("server", "--bind-address="+addresses[0], "--grpc-address=0", "--metrics-bind-address=0",
		"--health-probe-bind-address="+addresses[1], "--api-server="+w.Config.Host, "--namespace="+live.ReleaseNamespace,
		"--account-token-file="+at("token"), "--tls-cert-file="+at("tls.crt"), "--tls-private-key-file="+at("tls.key"),
		"--api-server-ca-file="+at("api-server.crt"))
	if err != nil {
		return nil, err
	}
	health := &caller{url: "http://" + addresses[1]}
	err = live.Until(ctx, startLimit, "the server to be ready", func(ctx context.Context) error {
		_, err := health.get(ctx, "/readyz")
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return &server{process: p, end: end{url: "https://" + addresses[0], authority: certificate}}, nil
}

// direct is the API server itself.
func (w *world) direct() end { return end{url: w.Config.Host, authority: w.authority} }
