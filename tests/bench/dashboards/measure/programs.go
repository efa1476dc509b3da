package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// stopLimit is how long a program may take to end by itself.
const stopLimit = 30 * time.Second

// process is a program that was started. It ends with this one, however that ends.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// start starts a program with its output in a file of its own.
func (w *world) start(program string, args ...string) (*process, error) {
	out, err := os.Create(w.at(filepath.Base(program) + ".log"))
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", program, err)
	}
	defer func() { _ = out.Close() }()
	p := &process{Cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.Stdout, p.Stderr = out, out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		_ = p.Wait() // by a signal
		close(p.ended)
	}()
	return p, nil
}

// stop tells a program to end, and waits until it has.
func (p *process) stop() error {
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopLimit):
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("stop %s: it had not ended after %v", p.Path, stopLimit)
	}
}

// pids are those of a program and of its workers.
func (p *process) pids() ([]int, error) {
	pid := p.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, fmt.Errorf("list the workers of %s: %w", p.Path, err)
	}
	all := []int{pid}
	for _, one := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(one)
		if err != nil {
			return nil, fmt.Errorf("list the workers of %s: %w", p.Path, err)
		}
		all = append(all, child)
	}
	return all, nil
}

// memory is what a program holds with its workers, in MiB. What several of them share counts once.
func (p *process) memory() (float64, error) {
	pids, err := p.pids()
	total := 0.0
	for _, pid := range pids {
		text, read := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		err = errors.Join(err, read)
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
				kib, read := strconv.ParseFloat(fields[1], 64)
				total, err = total+kib/1024, errors.Join(err, read)
			}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.Path, err)
	}
	return total, nil
}

// files is how many files a program and its workers have open.
func (p *process) files() (int, error) {
	pids, err := p.pids()
	count := 0
	for _, pid := range pids {
		found, read := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		count, err = count+len(found), errors.Join(err, read)
	}
	return count, err
}

// at returns the path of a file of the world.
func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

// certify writes a certificate for loopback that signs itself, and its key.
func (w *world) certify(context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "both ends"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	for name, text := range map[string][]byte{
		"tls.crt":        pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"tls.key":        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		"keys":           []byte(strings.Repeat("k", 32) + "\n"),
		"api-server.crt": w.authority,
	} {
		if err := os.WriteFile(w.at(name), text, 0o600); err != nil {
			return fmt.Errorf("write a file of both ends: %w", err)
		}
	}
	return nil
}

// startHead starts the head as a process of its own.
func (w *world) startHead(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	address := headIP + ":8265"
	if w.head, err = w.start(program, "-head", address); err != nil {
		return err
	}
	return answers(ctx, "the head", "http://"+address+smallPath, "")
}

// end is one of the two that hand on to the head.
type end struct {
	*process
	// address is the host and port of what is handed on, and before is what stands before the head's own path.
	address, before string
	// api is where the server's API is.
	api string
}

func (e *end) url(path string) string { return "https://" + e.address + e.before + path }

// startServer starts the server as the chart does, with the rights of its account.
func (w *world) startServer(ctx context.Context) (*end, error) {
	ports, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	token, err := w.tokenOf(ctx, live.ReleaseNamespace, live.ReleaseName+"-server")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.at("token"), []byte(token), 0o600); err != nil {
		return nil, fmt.Errorf("write a file of the server: %w", err)
	}
	p, err := w.start("bin/server", "--bind-address="+ports[0], "--grpc-address=0", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--api-server="+w.Config.Host, "--namespace="+live.ReleaseNamespace,
		"--account-token-file="+w.at("token"), "--tls-cert-file="+w.at("tls.crt"), "--tls-private-key-file="+w.at("tls.key"),
		"--api-server-ca-file="+w.at("api-server.crt"), "--session-key-file="+w.at("keys"), "--page-url=https://"+ports[0],
		"--dashboards-address="+ports[1], "--dashboards-url=https://"+ports[1])
	if err != nil {
		return nil, err
	}
	e := &end{process: p, address: ports[1], before: "/" + namespace + "/" + cluster, api: "https://" + ports[0]}
	return e, w.ready(ctx, e)
}

// startNginx starts nginx as its own manual has it for a proxy that upgrades. It asks nobody who a caller is.
func (w *world) startNginx(ctx context.Context) (*end, error) {
	ports, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`daemon off; user root; worker_processes auto; worker_rlimit_nofile 20000; pid %[1]s/nginx.pid; error_log %[1]s/nginx-errors.log;
events { worker_connections 20000; }
http {
  access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; client_max_body_size 1g; keepalive_requests 1000000000;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream head { server %[2]s:8265; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen %[3]s ssl backlog=4096; ssl_certificate %[1]s/tls.crt; ssl_certificate_key %[1]s/tls.key; ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      proxy_pass http://head; proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade; proxy_max_temp_file_size 0; proxy_request_buffering off; proxy_read_timeout 1h;
    }
  }
}
`, w.dir, headIP, ports[0])
	if err := os.WriteFile(w.at("nginx.conf"), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write a file of nginx: %w", err)
	}
	p, err := w.start("/usr/sbin/nginx", "-c", w.at("nginx.conf"), "-p", w.dir)
	if err != nil {
		return nil, err
	}
	e := &end{process: p, address: ports[0]}
	return e, w.ready(ctx, e)
}

// ready waits until an end hands on. One that does not is stopped.
func (w *world) ready(ctx context.Context, e *end) error {
	err := answers(ctx, e.Path, e.url(smallPath), w.tokens[0])
	if err == nil {
		return nil
	}
	said, _ := os.ReadFile(w.at(filepath.Base(e.Path) + ".log"))
	return errors.Join(err, e.stop(), errors.New(string(said)))
}

// answers waits until an address is answered by 200.
func answers(ctx context.Context, who, url, token string) error {
	return live.Until(ctx, startLimit, who+" to answer", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := newClient().Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("it is %d", answer.StatusCode)
		}
		return nil
	})
}

// newClient returns a client that takes the certificate of both ends, which is this program's own.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DisableKeepAlives: true}}
}

// trusting takes any certificate: both ends are on loopback, with one that this program has made.
func trusting() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

func freeAddresses(count int) ([]string, error) {
	var all []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // nothing came
		all = append(all, listener.Addr().String())
	}
	return all, nil
}
