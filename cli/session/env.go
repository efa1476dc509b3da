package session

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// environment is what programs sign in to a cluster with.
type environment struct {
	// Server and Token are for those that ask Heliostat's server themselves, and empty without one.
	Server string `json:"server,omitempty"`
	Token  string `json:"token,omitempty"`
	// Variables are those that Ray's programs read, as NAME=VALUE.
	Variables []string `json:"variables"`
}

func env(c *console.Console) *cobra.Command {
	var form string
	command := &cobra.Command{
		Use: "env NAME", Short: "Print the environment variables for Ray's own programs",
		Long: `Print the environment variables with which Ray's own programs sign in to a cluster, in a form that a shell can evaluate. They
contain the cluster's token and no address, which heliostat session provides. With --server they contain the cluster's
address at the server and your own token, which is all that Ray's job client needs. With -o json they are printed as a list,
together with server and token.`,
		Example: "  eval \"$(heliostat env dev)\"\n  eval \"$(heliostat env dev --server https://heliostat.example.com)\" && ray job list",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			if form != "" && form != "json" {
				return outcome.Errorf(outcome.Usage, "-o %s is no format of env; leave it out, or write -o json", form)
			}
			server, err := away.FindServer(c)
			if err != nil {
				return err
			}
			clusters, name, err := findCluster(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			found, err := environmentOf(cmd.Context(), clusters, server, name)
			if err != nil {
				return err
			}
			return found.print(c, form)
		},
	}
	c.AddServer(command.Flags())
	command.Flags().StringVarP(&form, "output", "o", "", "json, or lines for a shell by default")
	return command
}

// environmentOf returns what signs in to a cluster: through the server where there is one.
func environmentOf(ctx context.Context, clusters *away.Clusters, server *away.Server, name string) (environment, error) {
	if server == nil {
		way, err := clusters.Way(ctx, name)
		if err != nil {
			return environment{}, kube.Because(err)
		}
		return environment{Variables: signIn(way.Token())}, nil
	}
	at, err := server.Dashboard(ctx, clusters.Objects.Namespace, "clusters", name)
	if err != nil {
		return environment{}, err
	}
	token, err := server.Token(ctx)
	if err != nil {
		return environment{}, err
	}
	found := environment{Server: server.URL(), Token: token, Variables: []string{
		"RAY_API_SERVER_ADDRESS=" + strings.TrimRight(at, "/"),
		fmt.Sprintf(`RAY_JOB_HEADERS={"Authorization": "Bearer %s"}`, token),
	}}
	if to, err := url.Parse(at); err == nil && to.Scheme == "http" { // of this machine, or it would be refused
		found.Variables = append(found.Variables, direct(clusters.Console.Environ, to.Hostname())...)
	}
	return found, nil
}

func (e environment) print(c *console.Console, form string) error {
	if form == "json" {
		return json.NewEncoder(c.Out).Encode(e)
	}
	for _, variable := range e.Variables {
		name, value, _ := strings.Cut(variable, "=")
		if _, err := fmt.Fprintf(c.Out, "export %s=%s\n", name, quote(value)); err != nil {
			return fmt.Errorf("print variables: %w", err)
		}
	}
	return nil
}

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[-A-Za-z0-9_./:]+$`)

// quote returns a value as a shell takes it.
func quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// signIn are the variables of a token; a cluster without authentication needs none.
func signIn(token string) []string {
	if token == "" {
		return nil
	}
	return []string{"RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN=" + token}
}
