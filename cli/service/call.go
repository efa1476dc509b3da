package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// call is one request to a service.
type call struct {
	path, data string
	headers    []string
}

func newCall(c *console.Console) *cobra.Command {
	var asked call
	command := &cobra.Command{
		Use: "call NAME PATH", Short: "Send a request to a service, and print the response",
		Long: `Send a request to a pod of a service by a port-forward, or through the server (--server), and print the response. With -d the
request is a POST. Standard error shows the status and an equivalent curl command for use inside Kubernetes. Exit code: 1 if
the status is 400 or higher.`,
		Example: "  heliostat service call translate /\n" +
			"  heliostat service call translate /v1/models -d '{\"text\": \"hello\"}' -H 'Content-Type: application/json'",
		Args: console.Arguments(2, 2, "NAME and PATH"), ValidArgsFunction: object.Complete(c, kube.Service),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asked.path = args[1]; !strings.HasPrefix(asked.path, "/") {
				return outcome.Errorf(outcome.Usage, "the path %q must begin with /; write /%s", asked.path, asked.path)
			}
			objects, service, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return asked.send(cmd.Context(), c, objects, service)
		},
	}
	c.AddServer(command.Flags())
	command.Flags().StringVarP(&asked.data, "data", "d", "", "body of the request; makes it a POST")
	command.Flags().StringArrayVarP(&asked.headers, "header", "H", nil, "header, as NAME: VALUE; can be given more than once")
	return command
}

// send sends the request, and prints the answer.
func (r *call) send(ctx context.Context, c *console.Console, objects *kube.Objects, service *v1beta1.ClusterService) error {
	base, err := url.Parse(service.Status.URL)
	if err != nil || base.Host == "" {
		return outcome.Errorf(outcome.Refused, "service/%s has no address yet; see %s", service.Name,
			console.Again(service.Namespace, "why service/%s", service.Name))
	}
	c.Note("%s", r.curl(base))
	request, err := r.request(ctx, base)
	if err != nil {
		return err
	}
	heads, err := (&away.Clusters{Console: c, Objects: objects}).Find()
	if err != nil {
		return err
	}
	answer, err := heads.Call(ctx, service, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	c.Note("%s", answer.Status)
	if _, err := io.Copy(c.Out, answer.Body); err != nil {
		return fmt.Errorf("read the answer of service/%s: %w", service.Name, err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return &outcome.Error{Code: outcome.Failed}
	}
	return nil
}

// request returns the request for the address of the service.
func (r *call) request(ctx context.Context, base *url.URL) (*http.Request, error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if r.data != "" {
		method, body = http.MethodPost, strings.NewReader(r.data)
	}
	request, err := http.NewRequestWithContext(ctx, method, base.Scheme+"://"+base.Host+r.path, body)
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "invalid path %q: %w", r.path, err)
	}
	for _, header := range r.headers {
		name, value, hasValue := strings.Cut(header, ":")
		if !hasValue || strings.TrimSpace(name) == "" {
			return nil, outcome.Errorf(outcome.Usage, "-H %q is no header; write NAME: VALUE", name)
		}
		request.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return request, nil
}

// curl returns the same request for a shell within Kubernetes. Values of headers are left out: they may be credentials.
func (r *call) curl(base *url.URL) string {
	words := []string{"curl", quote(base.Scheme + "://" + base.Host + r.path)}
	if r.data != "" {
		words = append(words, "-d", quote(r.data))
	}
	for _, header := range r.headers {
		name, _, _ := strings.Cut(header, ":")
		words = append(words, "-H", quote(strings.TrimSpace(name)+": …"))
	}
	return strings.Join(words, " ")
}

// quote returns a word as a shell takes it.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
