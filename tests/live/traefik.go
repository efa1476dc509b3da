package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Traefik is a gateway that others wrote, as a process on this machine.
type Traefik struct {
	// URL is where it answers, Port that of the listener that a Gateway needs for it, and
	// Controller the name that a GatewayClass does.
	URL        string
	Port       int
	Controller string
	command    *exec.Cmd
	said       strings.Builder
}

// TraefikController is the name by which a GatewayClass means Traefik.
const TraefikController = "traefik.io/gateway-controller"

// BuildTraefik builds Traefik, if it was not built before, and returns the program.
func BuildTraefik(ctx context.Context, root string) (string, error) {
	build := exec.CommandContext(ctx, root+"/tests/gateway/build.sh")
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build Traefik by tests/gateway/build.sh, which needs a proxy of Go modules the first time: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// QuietTraefik are the flags by which it calls nobody and says little.
func QuietTraefik() []string {
	return []string{"--log.level=WARN", "--global.checknewversion=false", "--global.sendanonymoususage=false"}
}

// StartTraefik builds Traefik, if it was not built before, and starts it on the Kubernetes that
// KUBECONFIG names.
func StartTraefik(ctx context.Context, root string) (*Traefik, error) {
	program, err := BuildTraefik(ctx, root)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port for a gateway: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil || !ok {
		return nil, fmt.Errorf("find a port for a gateway: %w", err)
	}
	t := &Traefik{URL: "http://" + address.String(), Port: address.Port, Controller: TraefikController}
	t.command = exec.Command(program, append(QuietTraefik(), "--entrypoints.web.address="+address.String(), "--providers.kubernetesgateway=true")...)
	t.command.Stdout, t.command.Stderr = &t.said, &t.said
	t.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := t.command.Start(); err != nil {
		return nil, fmt.Errorf("start a gateway: %w", err)
	}
	return t, nil
}

// Stop ends it, and gives what it said.
func (t *Traefik) Stop() (string, error) {
	if err := t.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", fmt.Errorf("stop a gateway: %w", err)
	}
	_ = t.command.Wait() // it was killed
	return t.said.String(), nil
}
