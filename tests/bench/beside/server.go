package beside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	certutil "k8s.io/client-go/util/cert"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Files of a world: a certificate for loopback that signs itself and its key, the server's token, and the API server's
// authority.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	tokenFile       = "token"
	authorityFile   = "api-server.crt"
)

// certify writes the certificate and its key, and the API server's authority.
func (w *World) certify() error {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	return errors.Join(w.Write(certificateFile, certificate), w.Write(keyFile, key), w.Write(authorityFile, w.Authority))
}

// Write writes a file of the world.
func (w *World) Write(name string, text []byte) error {
	if err := os.WriteFile(w.At(name), text, 0o600); err != nil {
		return fmt.Errorf("write a file of the world: %w", err)
	}
	return nil
}

// Certificate returns the certificate of what runs beside the Kubernetes.
func (w *World) Certificate() ([]byte, error) {
	text, err := os.ReadFile(w.At(certificateFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return text, nil
}

// StartServer starts the server at an address as the chart does, with the rights of its account and with more flags, and
// waits until it has read everything.
func (w *World) StartServer(ctx context.Context, address string, flags ...string) (*Process, error) {
	health, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	token, err := w.TokenOf(ctx, live.ReleaseNamespace, live.ReleaseName+"-server")
	if err == nil {
		err = w.Write(tokenFile, []byte(token))
	}
	if err != nil {
		return nil, err
	}
	p, err := w.Start("bin/server", append([]string{
		"--bind-address=" + address, "--grpc-address=0", "--metrics-bind-address=0", "--health-probe-bind-address=" + health,
		"--api-server=" + w.Config.Host, "--namespace=" + live.ReleaseNamespace, "--account-token-file=" + w.At(tokenFile),
		"--tls-cert-file=" + w.At(certificateFile), "--tls-private-key-file=" + w.At(keyFile), "--api-server-ca-file=" + w.At(authorityFile),
	}, flags...)...)
	if err != nil {
		return nil, err
	}
	err = live.Until(ctx, StartLimit, "the server to be ready", func(ctx context.Context) error {
		return Answers(ctx, http.DefaultClient, "http://"+health+"/readyz", "")
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Answers asks for an address with a token, if there is one. It fails unless the answer is 200.
func Answers(ctx context.Context, client *http.Client, url, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", url, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", url, err)
	}
	_ = answer.Body.Close() // only the code is wanted
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for %s: it is %s", url, answer.Status)
	}
	return nil
}

// FreeAddress returns an address of loopback at which nothing listens.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_ = listener.Close() // nothing came
	return listener.Addr().String(), nil
}
