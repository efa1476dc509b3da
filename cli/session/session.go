// Package session lets programs on this machine use a cluster: session, connect, env, open.
//
// In: the name of a cluster. Out: ports of this machine that lead to its head, variables for Ray's own programs, or the
// dashboard in a browser, signed in.
//
// It must never listen on anything but the loopback address. What it lets through without the cluster's token must show a
// secret of this session. The token stands in no argument list, and in no text but that of env.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

const (
	// portClient is the head's port for Ray Client.
	portClient = 10001
	// endWithin is how long a command may take to end after an interruption.
	endWithin = 10 * time.Second
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{connect(c), env(c), open(c), session(c)}
}

// findCluster returns the clusters and the name of the one that is meant, which must be there.
func findCluster(ctx context.Context, c *console.Console, name string) (*away.Clusters, string, error) {
	clusters, target, err := find(ctx, c, name, kube.Cluster)
	return clusters, target.Name, err
}

// find returns the clusters and the object that is meant, which must be there, of one of some kinds. A name alone is of the first.
func find(ctx context.Context, c *console.Console, name string, kinds ...kube.Kind) (*away.Clusters, kube.Target, error) {
	if !strings.Contains(name, "/") {
		kinds = kinds[:1]
	}
	target, err := kube.ParseTarget(name, kinds...)
	if err != nil {
		return nil, kube.Target{}, err
	}
	objects, err := c.Connect()
	if err != nil {
		return nil, kube.Target{}, err
	}
	_, err = objects.Read(ctx, target)
	return &away.Clusters{Console: c, Objects: objects}, target, err
}

func session(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "session NAME [-- COMMAND…]", Short: "Forward a cluster's ports to this machine",
		Long: `Forward free ports of this machine to the head of a cluster, and print their addresses. With a COMMAND, run it with the
addresses and the token as environment variables, and exit with its exit code. Each new connection goes to the current head,
so a session survives a restart of the head. Several sessions can run at the same time.`,
		Example: "  heliostat session dev -- ray job list\n  heliostat session dev -- python notebook.py",
		Args:    console.Arguments(1, -1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 1 && len(args) > 1 {
				return outcome.Errorf(outcome.Usage, "write one name, and the command after --")
			}
			clusters, name, err := findCluster(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return lead(cmd.Context(), clusters, name, args[1:])
		},
	}
}

// lead leads ports until the command or the context ends.
func lead(ctx context.Context, clusters *away.Clusters, name string, command []string) error {
	way, err := clusters.Way(ctx, name)
	if err != nil {
		return kube.Because(err)
	}
	var doors sync.WaitGroup
	defer doors.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	toDashboard := func(ctx context.Context) (net.Conn, error) { return clusters.Dashboard(ctx, name) }
	dashboard, err := listen(ctx, &doors, toDashboard)
	if err != nil {
		return err
	}
	toClient := func(ctx context.Context) (net.Conn, error) { return clusters.Port(ctx, name, portClient) }
	client, err := listen(ctx, &doors, toClient)
	if err != nil {
		return err
	}
	c := clusters.Console
	variables := append([]string{"RAY_API_SERVER_ADDRESS=http://" + dashboard, "RAY_ADDRESS=ray://" + client}, direct(c.Environ, here)...)
	if len(command) == 0 {
		for _, variable := range variables {
			name, value, _ := strings.Cut(variable, "=")
			fmt.Fprintf(c.Out, "export %s=%s\n", name, quote(value))
		}
		c.Note("ports lead to cluster/%s until Ctrl-C; heliostat env %s prints what signs in", name, name)
		<-ctx.Done()
		return nil
	}
	return run(ctx, c, command, append(variables, signIn(way.Token())...))
}

// direct returns variables by which programs go to a host of this machine without the proxy that their environment names, if
// any: it would read the token. Programs prefer one of the two spellings, so both have what either had.
func direct(environ []string, host string) []string {
	isProxied, exempt := false, []string{host}
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		switch name = strings.ToLower(name); {
		case value == "":
		case name == "no_proxy":
			exempt = append(exempt, value)
		case strings.HasSuffix(name, "_proxy"):
			isProxied = true
		}
	}
	if !isProxied || slices.Contains(exempt, "*") {
		return nil
	}
	list := strings.Join(exempt, ",")
	return []string{"no_proxy=" + list, "NO_PROXY=" + list}
}

// run runs a command with variables, and ends as it does.
func run(ctx context.Context, c *console.Console, command, variables []string) error {
	program := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the user's own command
	program.Stdin, program.Stdout, program.Stderr = c.In, c.Out, c.ErrOut
	program.Env = append(append([]string{}, c.Environ...), variables...)
	program.WaitDelay = endWithin
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) } // it may have something to save
	err := program.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return &outcome.Error{Code: ended.ExitCode()}
	case err != nil:
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}

// listen leads connections to a free port of this machine to where a function connects, until the context ends.
func listen(ctx context.Context, doors *sync.WaitGroup, connect func(context.Context) (net.Conn, error)) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen on a port of this machine: %w", err)
	}
	doors.Go(func() {
		<-ctx.Done()
		_ = listener.Close() // nothing was promised
	})
	doors.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			doors.Go(func() { join(ctx, near, connect) })
		}
	})
	return listener.Addr().String(), nil
}

// join joins a connection with one to the head, until either ends.
func join(ctx context.Context, near net.Conn, connect func(context.Context) (net.Conn, error)) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	far, err := connect(ctx)
	if err != nil {
		_ = near.Close() // the program on the other side tries again
		return
	}
	stop := context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()
	go func() {
		_, _ = io.Copy(far, near) // the other direction learns that it ended
		end()
	}()
	_, _ = io.Copy(near, far)
}
