package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
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
	// upstream is the host by which a site is asked.
	upstream = "dashboard"
	// tokenFor is how long a token is used before it is read again.
	tokenFor = 10 * time.Second
	// headerWithin is how long a browser may take for the headers of a request.
	headerWithin = 10 * time.Second
	// mostPort is the highest port.
	mostPort = 65535
)

func open(c *console.Console) *cobra.Command {
	var port int
	command := &cobra.Command{
		Use: "open NAME", Short: "Serve the dashboard of a cluster, or the page of a job, on this machine",
		Long: `Serve the dashboard of a cluster on a free port of this machine, and print its address. The address contains a secret that
the browser keeps as a cookie, so other users of this machine and other pages have no access. The command adds the cluster's
token to each request, and runs until Ctrl-C. The address is a name below localhost, or 127.0.0.1 if such names do not resolve to
this machine. With --server, the command prints the address of the dashboard at the server, where the browser signs in, and exits.

open job/NAME serves the web page of the job's program while it runs, such as that of a Spark application, without a token.`,
		Example: "  heliostat open dev\n  heliostat open job/etl --port 4040",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			if port < 0 || port > mostPort {
				return outcome.Errorf(outcome.Usage, "--port %d is no port; give one from 1 to %d, or leave it out", port, mostPort)
			}
			server, err := away.FindServer(c)
			if err != nil {
				return err
			}
			clusters, target, err := find(cmd.Context(), c, args[0], kube.Cluster, kube.Job)
			switch {
			case err != nil:
				return err
			case target.Kind.Word == kube.Job.Word && server != nil:
				return outcome.Errorf(outcome.Refused, "the server serves no pages of jobs; leave out --server")
			case target.Kind.Word == kube.Job.Word:
				return openPage(cmd.Context(), clusters, target.Name, port)
			case server != nil:
				return printDashboard(cmd.Context(), clusters, server, target.Name)
			}
			if _, err := clusters.Way(cmd.Context(), target.Name); err != nil {
				return kube.Because(err)
			}
			return serve(cmd.Context(), c, dashboardOf(clusters, target.Name), port)
		},
	}
	c.AddServer(command.Flags())
	command.Flags().IntVar(&port, "port", 0, "port of this machine; default: a free one")
	return command
}

// site is what open serves.
type site struct {
	// title says what it is, and origin what answers.
	title, origin string
	connect       func(ctx context.Context) (net.Conn, error)
	// token returns what signs in there, and none where nothing does.
	token func(ctx context.Context) string
}

// dashboardOf returns the dashboard of the head that a cluster has at the time of each request.
func dashboardOf(clusters *away.Clusters, name string) site {
	known := &credential{}
	return site{
		title: "the dashboard of cluster/" + name, origin: "the head of cluster " + name,
		connect: func(ctx context.Context) (net.Conn, error) { return clusters.Dashboard(ctx, name) },
		token:   func(ctx context.Context) string { return known.get(ctx, clusters, name) },
	}
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

// serve serves a site until the context ends.
func serve(ctx context.Context, c *console.Console, of site, port int) error {
	listeners, err := listenLocally(ctx, port)
	if err != nil {
		return fmt.Errorf("listen on a port of this machine: %w", err)
	}
	at := newDoor(ctx, c.Resolve, portOf(listeners[0]))
	server := &http.Server{ReadHeaderTimeout: headerWithin, Handler: at.guard(proxy(of, at))}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintln(c.Out, at.address())
	c.Note("%s is at this address until Ctrl-C", of.title)
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
		return fmt.Errorf("serve %s: %w", of.title, failed)
	}
	return nil
}

// proxy passes requests on to a site as it is then, with what signs in there.
func proxy(of site, at *door) http.Handler {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return of.connect(ctx) }},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: upstream})
			r.Out.Header.Del("Cookie") // the session's secret is nothing to the site
			r.Out.Header.Del("Origin")
			if prefix := strings.TrimSuffix(at.path, "/"); prefix != "" {
				r.Out.Header.Set("X-Forwarded-Context", prefix) // Spark's page has links that begin with it
			}
			if token := of.token(r.In.Context()); token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			at.clean(answer)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			said := fmt.Sprintf("%s does not answer: %v", of.origin, err)
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
