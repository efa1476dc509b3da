package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// portHTTP is the name of the port of a service that takes HTTP.
const portHTTP = "http"

// call is one request to a service.
type call struct {
	path, data string
	headers    []string
}

func newCall(c *console.Console) *cobra.Command {
	var asked call
	command := &cobra.Command{
		Use: "call NAME PATH", Short: "Send one request to a service, and print its answer",
		Long: `Send one request to a pod of a service by a port-forward, and print the answer. With -d it is a POST. Standard error has
the status, and the same as a line of curl for use within Kubernetes. Exit code: 1 where the service answers 400 or more.`,
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
	command.Flags().StringVarP(&asked.data, "data", "d", "", "body of the request, which is a POST then")
	command.Flags().StringArrayVarP(&asked.headers, "header", "H", nil, "header, as NAME: VALUE; can be given more than once")
	return command
}

// send sends the request to a pod that accepts requests.
func (r *call) send(ctx context.Context, c *console.Console, objects *kube.Objects, service *v1alpha1.ClusterService) error {
	base, err := url.Parse(service.Status.URL)
	if err != nil || base.Host == "" {
		return outcome.Errorf(outcome.Refused, "service/%s has no address yet; see %s", service.Name,
			console.Again(service.Namespace, "why service/%s", service.Name))
	}
	c.Note("%s", r.curl(base))
	if base.Scheme != "http" {
		return outcome.Errorf(outcome.Refused, "service/%s speaks TLS, whose certificate is for its address within Kubernetes; "+
			"send the request there", service.Name)
	}
	pod, port, err := findPod(ctx, objects, service)
	if err != nil {
		return err
	}
	request, err := r.request(ctx, base)
	if err != nil {
		return err
	}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Forward(ctx, pod, port) }
	transport := &http.Transport{DisableKeepAlives: true, DialContext: connect}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return kube.Because(fmt.Errorf("call service/%s: %w", service.Name, err))
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
		return nil, outcome.Errorf(outcome.Usage, "the path %q is none of an address: %w", r.path, err)
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

// findPod returns a ready pod that accepts requests for a service, and the port where it does.
func findPod(ctx context.Context, objects *kube.Objects, service *v1alpha1.ClusterService) (types.NamespacedName, int, error) {
	front := &corev1.Service{}
	if err := objects.Get(ctx, client.ObjectKeyFromObject(service), front); err != nil {
		return types.NamespacedName{}, 0, kube.Because(fmt.Errorf("read Service %s: %w", service.Name, err))
	}
	port := 0
	for _, one := range front.Spec.Ports {
		if one.Name == portHTTP {
			port = one.TargetPort.IntValue()
		}
	}
	pods := &corev1.PodList{}
	if err := objects.List(ctx, pods, client.InNamespace(service.Namespace),
		client.MatchingLabels(front.Spec.Selector)); err != nil {
		return types.NamespacedName{}, 0, kube.Because(fmt.Errorf("list pods of service %s: %w", service.Name, err))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port > 0 && len(front.Spec.Selector) > 0 && isReady(pod) {
			return client.ObjectKeyFromObject(pod), port, nil
		}
	}
	return types.NamespacedName{}, 0, outcome.Errorf(outcome.Refused, "no pod accepts requests for service/%s now; see %s",
		service.Name, console.Again(service.Namespace, "why service/%s", service.Name))
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
