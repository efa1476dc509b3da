package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// withServer are the chart's settings for a server for portals, with dashboards, beside the operator. It requests no CPU: the
// sample fills the two cores of a node.
var withServer = []string{"--set", "server.enabled=true,server.replicas=1,server.dashboards.enabled=true", "--set-string", "server.resources.requests.cpu=0"}

// portal is the server for portals, asked by an account that may edit in a namespace.
type portal struct {
	client     *http.Client
	url, token string
	// dashboards is where the clusters of the namespace are.
	dashboards string
	namespace  string
}

// newPortal reaches the server by its pod, with its own certificate.
func newPortal(ctx context.Context, namespace string) *portal {
	GinkgoHelper()
	authority := x509.NewCertPool()
	Expect(authority.AppendCertsFromPEM(serverAuthority(ctx))).To(BeTrue())
	server := serverPod(ctx)
	return &portal{
		url: "https://" + forward(ctx, &server, 8443) + "/v1/namespaces/" + namespace, token: editor(ctx, namespace), namespace: namespace,
		dashboards: "https://" + forward(ctx, &server, 8444) + "/" + namespace,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: authority, ServerName: serverName + "." + live.ReleaseNamespace + ".svc", MinVersion: tls.VersionTLS12,
		}}},
	}
}

// serverName is that of the server's objects.
const serverName = live.ReleaseName + "-server"

// serverPod waits until there is one server, and it is ready.
func serverPod(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	eventually(ctx, "one server", func(ctx context.Context) error {
		err := kubernetes.List(ctx, &pods, client.InNamespace(live.ReleaseNamespace), client.MatchingLabels{"app.kubernetes.io/component": "server"})
		if err == nil && (len(pods.Items) != 1 || !isReady(&pods.Items[0])) {
			err = fmt.Errorf("there are %d, or it is not ready", len(pods.Items))
		}
		return err
	})
	return pods.Items[0]
}

// serverAuthority returns the authority of the server's certificate, as PEM.
func serverAuthority(ctx context.Context) []byte {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: live.ReleaseNamespace, Name: serverName + "-tls"}, &secret)).To(Succeed())
	return secret.Data["ca.crt"]
}

// editor makes an account that may edit in a namespace, and returns a token of it.
func editor(ctx context.Context, namespace string) string {
	GinkgoHelper()
	return tokenOf(ctx, namespace, "portal", "edit")
}

// tokenOf makes an account that has a role in a namespace, and returns a token of it.
func tokenOf(ctx context.Context, namespace, name, role string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(kubernetes.Create(ctx, account)).To(Succeed())
	bind(ctx, namespace, role, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	request := &authenticationv1.TokenRequest{}
	Expect(kubernetes.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// bind binds a role in a namespace.
func bind(ctx context.Context, namespace, role string, to rbacv1.Subject) {
	GinkgoHelper()
	Expect(kubernetes.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "portal-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{to},
	})).To(Succeed())
}

// send sends a request, and returns the whole body of the answer and what came behind it.
func (p *portal) send(ctx context.Context, method, path, body string) (text []byte, behind http.Header) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.StatusCode).To(BeNumerically("<", http.StatusMultipleChoices), string(text))
	return text, answer.Trailer
}

// output follows an output to its end, and returns it with its outcome and its exit code.
func (p *portal) output(ctx context.Context, path string) (text []byte, end string) {
	GinkgoHelper()
	text, behind := p.send(ctx, http.MethodGet, path, "")
	return text, behind.Get("Heliostat-Outcome") + " " + behind.Get("Heliostat-Exit-Code")
}

// proxied asserts that Ray's own job API is reached through the dashboard proxy, and a job's log by a WebSocket.
func (p *portal) proxied(ctx context.Context, cluster string, job *v1beta1.ClusterJob, log string) {
	GinkgoHelper()
	header := http.Header{"Authorization": {"Bearer " + p.token}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.dashboards+"/"+cluster+"/api/jobs/"+job.Status.SubmissionID, nil)
	Expect(err).NotTo(HaveOccurred())
	r.Header = header
	answer, err := p.client.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	var told struct{ Status string }
	Expect(json.NewDecoder(answer.Body).Decode(&told)).To(Succeed())
	Expect(told.Status).To(Equal("SUCCEEDED"))

	//nolint:bodyclose // the answer that opens a WebSocket has none
	tail, _, err := websocket.Dial(ctx, p.dashboards+"/"+cluster+"/api/jobs/"+job.Status.SubmissionID+"/logs/tail",
		&websocket.DialOptions{HTTPClient: p.client, HTTPHeader: header})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = tail.CloseNow() }() // it was read to its end
	var text strings.Builder
	for {
		_, part, err := tail.Read(ctx)
		if err != nil {
			Expect(websocket.CloseStatus(err)).To(Equal(websocket.StatusNormalClosure), "%v", err)
			break
		}
		text.Write(part)
	}
	Expect(text.String()).To(Equal(log))
}

// served asserts that jobs are read, submitted and stopped through the server.
func served(setting func() (*office, *env), jobs map[string]task) {
	It("have their output through the server for portals, byte for byte, and are stopped by it", func(ctx SpecContext) {
		o, shared := setting()
		p, head := newPortal(ctx, o.namespace), shared.head(ctx)
		for name, want := range map[string]string{"words": "Succeeded 0", "fails": "Failed 3"} {
			job := jobs[name].is(ctx, strings.Fields(want)[0])
			file := exec(ctx, &head, "cat", "/tmp/ray/session_latest/logs/job-driver-"+job.Status.SubmissionID+".log")
			text, end := p.output(ctx, "/jobs/"+job.Name+"/log?follow=true")
			Expect(string(text)).To(Equal(file))
			Expect(end).To(Equal(want))
			part, _ := p.output(ctx, "/jobs/"+job.Name+"/log?offset=7")
			Expect(string(part)).To(Equal(file[7:]))
			if job.Status.Phase == v1beta1.PhaseSucceeded {
				p.proxied(ctx, "shared", job, file)
			}
		}

		text, _ := p.send(ctx, http.MethodPost, "/clusters/shared/submissions", `{"id": "by-portal", "entrypoint": "echo hello; exit 4"}`)
		Expect(bytes.Contains(text, []byte(`"by-portal"`))).To(BeTrue(), string(text))
		text, end := p.output(ctx, "/clusters/shared/submissions/by-portal/log?follow=true")
		Expect(string(text)).To(ContainSubstring("\nhello\n")) // Ray writes lines of its own around it
		Expect(end).To(Equal("Failed 4"))

		endless := o.shares(ctx, "portal-endless", beat)
		endless.is(ctx, v1beta1.PhaseRunning)
		p.send(ctx, http.MethodPost, "/jobs/"+endless.Name+":stop", "")
		job := endless.is(ctx, v1beta1.PhaseStopped)
		Expect(reasonOf(job)).To(Equal(reason.Stopped.Code), live.SaysOf(job))
		Eventually(func(g Gomega) { // the server sees it a moment later
			text, _ := p.send(ctx, http.MethodGet, "/jobs/"+endless.Name, "")
			var seen struct {
				Line struct{ Code string }
				Why  []struct{ Code string }
			}
			g.Expect(json.Unmarshal(text, &seen)).To(Succeed())
			g.Expect(seen.Line.Code).To(Equal(reason.Stopped.Code))
			g.Expect(seen.Why).NotTo(BeEmpty())
		}).WithContext(ctx).Within(limit).Should(Succeed())
	}, Label(live.IPv6Label), SpecTimeout(limit))
}
