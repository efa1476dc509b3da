package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// startHead starts the head as a process of its own.
func (w *world) startHead(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	address := headIP + ":8265"
	if w.head, err = w.Start(program, "-head", address); err != nil {
		return err
	}
	return answers(ctx, "the head", "http://"+address+smallPath, "")
}

// end is one of the two that hand on to the head.
type end struct {
	*beside.Process
	// address is the host and port of what is handed on, and before is what stands before the head's own path.
	address, before string
	// api is where the server's API is.
	api string
}

func (e *end) url(path string) string { return "https://" + e.address + e.before + path }

// startServer starts the server as the chart does, with dashboards at an address of their own.
func (w *world) startServer(ctx context.Context) (*end, error) {
	api, err := beside.FreeAddress()
	if err != nil {
		return nil, err
	}
	address, err := beside.FreeAddress()
	if err == nil {
		err = w.Write("keys", []byte(strings.Repeat("k", 32)+"\n"))
	}
	if err != nil {
		return nil, err
	}
	p, err := w.StartServer(ctx, api, "--session-key-file="+w.At("keys"), "--page-url=https://"+api,
		"--dashboards-address="+address, "--dashboards-url=https://"+address)
	if err != nil {
		return nil, err
	}
	e := &end{Process: p, address: address, before: "/" + namespace + "/" + cluster, api: "https://" + api}
	return e, w.ready(ctx, e)
}

// startNginx starts nginx as its own manual has it for a proxy that upgrades. It asks nobody who a caller is.
func (w *world) startNginx(ctx context.Context) (*end, error) {
	address, err := beside.FreeAddress()
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
`, w.At(""), headIP, address)
	if err := w.Write("nginx.conf", []byte(text)); err != nil {
		return nil, err
	}
	p, err := w.Start("/usr/sbin/nginx", "-c", w.At("nginx.conf"), "-p", w.At(""))
	if err != nil {
		return nil, err
	}
	e := &end{Process: p, address: address}
	return e, w.ready(ctx, e)
}

// ready waits until an end hands on. One that does not is stopped.
func (w *world) ready(ctx context.Context, e *end) error {
	err := answers(ctx, e.Path, e.url(smallPath), w.tokens[0])
	if err == nil {
		return nil
	}
	said, _ := os.ReadFile(w.LogOf(e.Path))
	return errors.Join(err, e.Stop(), errors.New(string(said)))
}

// answers waits until an address is answered by 200.
func answers(ctx context.Context, who, url, token string) error {
	return live.Until(ctx, beside.StartLimit, who+" to answer", func(ctx context.Context) error {
		return beside.Answers(ctx, newClient(), url, token)
	})
}

// newClient returns a client that takes the certificate of both ends, which is this program's own.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DisableKeepAlives: true}}
}

// trusting takes any certificate: both ends are on loopback, with one that this program has made.
func trusting() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
