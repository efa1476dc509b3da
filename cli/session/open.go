package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
)

const (
	// upstream is the host by which the head's dashboard is asked.
	upstream = "dashboard"
	// tokenFor is how long a token is used before it is read again.
	tokenFor = 10 * time.Second
	// headerWithin is how long a browser may take for the headers of a request.
	headerWithin = 10 * time.Second
)

func open(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use: "open NAME", Short: "Serve the dashboard of a cluster on this machine, signed in, until Ctrl-C",
		Long: `Serve the dashboard of a cluster on a free port of this machine, and print its address. The address has a secret that the
browser keeps as a cookie: other users of this machine, and other pages, are not let in. Requests get the cluster's token
on the way. The address is below localhost, or below 127.0.0.1 where names below localhost do not lead to this machine.
With --server it prints where the server serves the dashboard, and ends: the browser signs in there.`,
		Args: console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := away.FindServer(c)
			if err != nil {
				return err
			}
			clusters, name, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if server != nil {
				return printDashboard(cmd.Context(), clusters, server, name)
			}
			if _, err := clusters.Way(cmd.Context(), name); err != nil {
				return kube.Because(err)
			}
			return serve(cmd.Context(), clusters, name)
		},
	}
	c.AddServer(command.Flags())
	return command
}

// printDashboard prints where the server serves the dashboard.
func printDashboard(ctx context.Context, clusters *away.Clusters, server *away.Server, name string) error {
	at, err := server.Dashboard(ctx, clusters.Objects.Namespace, "clusters", name)
	if err != nil {
		return err
	}
	fmt.Fprintln(clusters.Console.Out, console.Printable(at))
	clusters.Console.Note("the server serves the dashboard of cluster/%s at this address; sign in there", name)
	return nil
}

// serve serves the dashboard until the context ends.
func serve(ctx context.Context, clusters *away.Clusters, name string) error {
	listeners, err := listenLocally(ctx)
	if err != nil {
		return fmt.Errorf("listen on a port of this machine: %w", err)
	}
	at := newDoor(ctx, clusters.Console.Resolve, portOf(listeners[0]))
	server := &http.Server{ReadHeaderTimeout: headerWithin, Handler: at.guard(proxy(clusters, name, at))}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintln(clusters.Console.Out, at.address())
	clusters.Console.Note("the dashboard of cluster/%s is at this address until Ctrl-C", name)
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { ended <- server.Serve(listener) }()
	}
	var failed error
	for range listeners {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			failed = errors.Join(failed, err)
		}
		_ = server.Close() // the other ones end too
	}
	if failed != nil {
		return fmt.Errorf("serve the dashboard: %w", failed)
	}
	return nil
}

// proxy passes requests on to the head that there is then, with the cluster's token.
func proxy(clusters *away.Clusters, name string, at *door) http.Handler {
	known := &credential{}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return clusters.Dashboard(ctx, name) },
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: upstream})
			r.Out.Header.Del("Cookie") // the session's secret is nothing to the dashboard
			r.Out.Header.Del("Origin")
			if token := known.get(r.In.Context(), clusters, name); token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			at.clean(answer)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			said := fmt.Sprintf("the head of cluster %s does not answer: %v", name, err)
			http.Error(w, console.Printable(said), http.StatusBadGateway)
		},
	}
}

// credential is the token of a cluster, which is read again from time to time: another head may have another.
type credential struct {
	mu    sync.Mutex
	token string
	until time.Time
}

// get returns the token, and none where it cannot be read: the head says then what is missing.
func (k *credential) get(ctx context.Context, clusters *away.Clusters, name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := clusters.Console.Clock.Now()
	if now.Before(k.until) {
		return k.token
	}
	way, err := clusters.Way(ctx, name)
	if err != nil {
		return ""
	}
	k.token, k.until = way.Token(), now.Add(tokenFor)
	return k.token
}
