package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// canary is a text that must not be found where it does not belong.
type canary struct {
	name, text string
	// isOfObject is that it is part of an object, which answers show to those who may read it. isSaid is that a caller says it in
	// a body or a query: the API server's own answer to them may quote that.
	isOfObject, isSaid bool
}

// mayBeIn reports whether a canary belongs where it is.
func (c canary) mayBeIn(place heard) bool {
	return c.isOfObject && !place.isError || c.isSaid && place.isPassed
}

// forms are those in which a text may be written.
func (c canary) forms() []string {
	quoted, _ := json.Marshal(c.text) // a text always marshals
	forms := []string{c.text, url.QueryEscape(c.text), url.PathEscape(c.text), strings.Trim(string(quoted), `"`), hex.EncodeToString([]byte(c.text))}
	for before := range 3 { // what stands before it shifts base64
		shifted := append(make([]byte, before), c.text...)
		from, to := (before*8+5)/6, len(shifted)/3*4
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			forms = append(forms, encoding.EncodeToString(shifted)[from:to])
		}
	}
	return forms
}

// isIn returns the form in which a text holds the canary, if it does.
func (c canary) isIn(text []byte) (string, bool) {
	for _, form := range c.forms() {
		if bytes.Contains(text, []byte(form)) {
			return form, true
		}
	}
	return "", false
}

// heard is what a server has answered.
type heard struct {
	what    string
	text    []byte
	isError bool
	// isPassed is that the answer is the API server's own.
	isPassed bool
}

// aviary is a server with canaries all around it.
type aviary struct {
	*portal
	*testing.T
	namespace, calls string
	canaries         []canary
	// tokens are credentials by whose they are, and headers go along with each request.
	tokens  map[string]string
	headers map[string]string
	answers chan heard
}

// plant returns a text that stands nowhere else, and that every way of escaping changes.
func (a *aviary) plant(name string, isOfObject bool) string {
	one := canary{name: name, isOfObject: isOfObject, text: fmt.Sprintf("canary-%02d/+~%s", len(a.canaries), strings.ReplaceAll(a.namespace, "integration-", "x"))}
	a.canaries = append(a.canaries, one)
	return one.text
}

// plantSaid plants what a caller says in a query or a body.
func (a *aviary) plantSaid(name string, isOfObject bool) string {
	text := a.plant(name, isOfObject)
	a.canaries[len(a.canaries)-1].isSaid = true
	return text
}

// keep makes a secret a canary that is there anyway.
func (a *aviary) keep(name, text string) string {
	a.canaries = append(a.canaries, canary{name: name, text: text})
	return text
}

// TestServer_GivesNoSecretAway to callers, logs or metrics, by any route, with any credential.
func TestServer_GivesNoSecretAway(t *testing.T) {
	t.Parallel()
	a := &aviary{T: t, namespace: newNamespace(t), calls: freeAddress(t), answers: make(chan heard, 10_000)}
	a.portal = startServer(t, "--grpc-address="+a.calls, "-v=1")
	headsIn(t, a.namespace, willing)
	watching(t, a.namespace)
	a.populate()
	a.askAll()
	metrics, err := end{"http://" + a.metrics, http.DefaultClient}.reads(t.Context(), "", "/metrics")
	must(t, err)
	places := []heard{{what: "the log", text: []byte(a.log.String()), isError: true}, {what: "the metrics", text: metrics, isError: true}}
	errors, found := 0, 0
	for one := range a.answers {
		places = append(places, one)
		if one.isError {
			errors++
		}
	}
	for _, one := range a.canaries {
		for _, place := range places {
			if form, is := one.isIn(place.text); is && !one.mayBeIn(place) {
				found++
				t.Errorf("%s is in %s as %q:\n%.2000s", one.name, place.what, form, place.text)
			}
		}
	}
	t.Logf("%d canaries, %d answers, %d of them errors, %d KiB of log and metrics: %d found", len(a.canaries), len(places)-2, errors, (len(a.log.String())+len(metrics))>>10, found)
	if errors == 0 || errors == len(places)-2 || !strings.Contains(a.log.String(), `"verb":"create"`) {
		t.Error("not both good and bad requests were made")
	}
}

// populate makes what holds secrets: callers, objects with variables, a Secret of a user's, and the token of a cluster.
func (a *aviary) populate() {
	a.Helper()
	a.tokens = map[string]string{
		"an editor": a.keep("the editor's token", account(a.T, a.namespace, "editor", "edit")), "a caller without rights": a.keep("a token without rights", account(a.T, a.namespace, "nobody", "")),
		"garbage": a.plant("a garbage token", false),
		"expired": a.keep("an expired token", "e30.eyJpc3MiOiJ4IiwiZXhwIjoxfQ."+base64.RawURLEncoding.EncodeToString([]byte(a.namespace))),
		"no one":  "",
	}
	for _, name := range []string{"an editor", "a caller without rights"} {
		a.keep("the signature of the token of "+name, strings.Split(a.tokens[name], ".")[2])
	}
	a.headers = map[string]string{}
	for _, name := range []string{"Cookie", "X-Remote-User", "Impersonate-User", "Proxy-Authorization", "X-Api-Key", "Idempotency-Key", "Traceparent"} {
		a.headers[name] = a.plant("the header "+name, false)
	}
	for _, name := range []string{"token", "tls.key"} {
		text, err := os.ReadFile(filepath.Join(a.dir, name))
		must(a.T, err)
		a.keep("the server's own "+name, strings.TrimSpace(string(text)))
	}
	must(a.T, shared.Create(a.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "warehouse"}, StringData: map[string]string{"password": a.plant("a user's Secret", false)},
	}))
	cluster := newCluster(a.namespace, "demo", 0)
	cluster.Spec.Head.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "ray", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: a.plant("a variable of a cluster", true)}},
	}}}}
	must(a.T, shared.Create(a.Context(), cluster))
	ready(a.T, types.NamespacedName{Namespace: a.namespace, Name: "demo"})
	secrets := &corev1.SecretList{}
	must(a.T, shared.List(a.Context(), secrets, client.InNamespace(a.namespace), client.HasLabels{v1beta1.LabelCluster}))
	for i := range secrets.Items {
		for key, value := range secrets.Items[i].Data {
			a.keep(key+" of the Secret "+secrets.Items[i].Name, string(value))
		}
	}
	speaker{a.portal, a.tokens["an editor"]}.waits(a.T, a.namespace)
}

// askAll asks by all routes, and closes the answers.
func (a *aviary) askAll() {
	a.Helper()
	queried, broken := a.plantSaid("a query parameter", false), a.plantSaid("a body that is no JSON", false)
	refused, run := a.plantSaid("a variable of a refused object", true), a.plantSaid("a variable of a submission", true)
	env := fmt.Sprintf(`{"spec":{"containers":[{"name":"ray","env":[{"name":"A","value":%q}]}]}}`, refused)
	object := fmt.Sprintf(`{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","metadata":{"name":"refused"},"spec":{"rayVersion":"1.0","head":{"template":%s}}}`, env)
	submission := fmt.Sprintf(`{"entrypoint":"work 1 0","runtime_env":{"env_vars":{"A":%q}}}`, run)
	bodies := []string{"", `{"object":` + object + `}`, object, submission, `{"password":` + broken}
	var group errgroup.Group
	group.SetLimit(8)
	ask := func(method, path, who, body string) {
		group.Go(func() error { return a.ask(method, path, who, body) })
	}
	query := "?access_token=" + url.QueryEscape(queried)
	for who := range a.tokens {
		for _, one := range rest.Routes() {
			path := strings.NewReplacer("{namespace}", a.namespace, "{kind}", "clusters", "{name}", "demo", "{id}", "none").Replace(one.Path)
			ask(one.Method, path, who, "")
			ask(one.Method, path+query, who, "")
			if one.Method == http.MethodPost {
				for _, body := range bodies {
					ask(one.Method, path, who, body)
				}
			}
		}
		for _, path := range a.passed() {
			ask(http.MethodGet, path, who, "")
			if !strings.Contains(path, "?") {
				ask(http.MethodGet, path+query, who, "")
			}
		}
		for _, body := range bodies {
			ask(http.MethodPost, a.kind(), who, body)
			ask(http.MethodPut, a.kind()+"/refused", who, body)
			ask(http.MethodPatch, a.kind()+"/demo", who, body)
		}
		group.Go(func() error { return a.callAll(who) })
	}
	must(a.T, group.Wait())
	close(a.answers)
}

func (a *aviary) kind() string {
	return "/apis/heliostat.dev/v1beta1/namespaces/" + a.namespace + "/computeclusters"
}

// passed are paths of Kubernetes' own, those that are served and others.
func (a *aviary) passed() []string {
	return []string{
		"/version", "/apis", "/api/v1", "/openapi/v3", a.kind(), a.kind() + "/demo", a.kind() + "?watch=true&timeoutSeconds=1", a.kind() + "/none", a.kind() + "?limit=x",
		"/api/v1/namespaces/" + a.namespace + "/events", "/api/v1/namespaces/" + a.namespace + "/secrets/warehouse", "/apis/heliostat.dev/v1beta1/../x", "/none", "/metrics",
	}
}

// askWithin is how long an answer is read that goes on.
const askWithin = 10 * time.Second

// ask sends a request with all canaries that a caller can send, and keeps what comes.
func (a *aviary) ask(method, path, who, body string) error {
	ctx, cancel := context.WithTimeout(a.Context(), askWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range a.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if token := a.tokens[who]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	came, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = came.Body.Close() }()
	head, _ := json.Marshal(came.Header) // headers always marshal
	text, err := readSome(came)
	a.answers <- heard{
		what: fmt.Sprintf("the answer %d to %s %s of %s", came.StatusCode, method, path, who), text: append(head, text...),
		isError: came.StatusCode >= http.StatusBadRequest, isPassed: came.Header.Get("Audit-Id") != "",
	}
	return err
}

// readSome reads an answer, and of one that goes on what comes first.
func readSome(came *http.Response) ([]byte, error) {
	if came.Header.Get("Content-Type") == "text/event-stream" {
		first := make([]byte, 64<<10)
		n, _ := io.ReadAtLeast(came.Body, first, 1<<10) // it may be over before
		return first[:n], nil
	}
	return io.ReadAll(came.Body)
}

// callAll makes all calls by gRPC.
func (a *aviary) callAll(who string) error {
	connection, err := grpc.NewClient(a.calls, grpc.WithTransportCredentials(credentials.NewTLS(a.client.Transport.(*http.Transport).TLSClientConfig.Clone())))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	methods := heliostatv1.File_heliostat_v1_portal_proto.Services().ByName("Portal").Methods()
	for i := range methods.Len() {
		a.call(connection, methods.Get(i), who)
	}
	return nil
}

// call makes one call, and keeps its first answer or its error.
func (a *aviary) call(connection *grpc.ClientConn, method protoreflect.MethodDescriptor, who string) {
	ctx, cancel := context.WithTimeout(a.Context(), askWithin)
	defer cancel()
	pairs := []string{"authorization", "Bearer " + a.tokens[who]}
	for name, value := range a.headers {
		pairs = append(pairs, strings.ToLower(name), value)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
	in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	for name, value := range map[protoreflect.Name]string{"namespace": a.namespace, "kind": "clusters", "name": "demo", "id": "none"} {
		if field := method.Input().Fields().ByName(name); field != nil {
			in.Set(field, protoreflect.ValueOfString(value))
		}
	}
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: method.IsStreamingServer()}, fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()))
	if err == nil {
		err = stream.SendMsg(in)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err == nil {
		err = stream.RecvMsg(out)
	}
	a.answers <- heard{what: fmt.Sprintf("the answer to the call %s of %s", method.Name(), who), text: fmt.Append(nil, out, err), isError: err != nil}
}
