package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Names that browsers know the server by. Nobody resolves them: chromium is told where they are.
const (
	pageName, clustersName, wildcardName = "heliostat.test", "clusters.test", "ray.test"
	dashboardsName                       = serverName + "-dashboards"
)

// onHosts has the server serve dashboards by a name, with settings of the chart.
func onHosts(ctx context.Context, settings ...string) {
	GinkgoHelper()
	named := []string{"--set", "server.url=https://" + pageName}
	Expect(live.Install(ctx, root, slices.Concat(withServer, named, settings)...)).To(Succeed())
}

// withDashboards is onHosts until the specs of the container have run.
func withDashboards(ctx context.Context, settings ...string) {
	GinkgoHelper()
	onHosts(ctx, settings...)
	DeferCleanup(func(ctx SpecContext) { Expect(live.Install(ctx, root, withServer...)).To(Succeed()) }, NodeTimeout(limit))
}

// clusterIP returns the address of a Service of the release, as this machine reaches it.
func clusterIP(ctx context.Context, name string) string {
	GinkgoHelper()
	var service corev1.Service
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: live.ReleaseNamespace, Name: name}, &service)).To(Succeed())
	return service.Spec.ClusterIP
}

// serverPods waits until as many servers are ready, and none is leaving but those that carry what is open.
func serverPods(ctx context.Context, replicas int) []corev1.Pod {
	GinkgoHelper()
	var ready []corev1.Pod
	eventually(ctx, fmt.Sprintf("%d servers", replicas), func(ctx context.Context) error {
		var pods corev1.PodList
		err := kubernetes.List(ctx, &pods, client.InNamespace(live.ReleaseNamespace), client.MatchingLabels{"app.kubernetes.io/component": "server"})
		ready = nil
		for _, pod := range pods.Items {
			if isReady(&pod) && pod.DeletionTimestamp == nil {
				ready = append(ready, pod)
			}
		}
		if err == nil && len(ready) != replicas {
			err = fmt.Errorf("%d are ready", len(ready))
		}
		return err
	})
	return ready
}

// replaceServers replaces each server by another one, as an upgrade does, and waits until that is over.
func replaceServers(ctx context.Context, replicas int) {
	GinkgoHelper()
	name := types.NamespacedName{Namespace: live.ReleaseNamespace, Name: serverName}
	var deployment appsv1.Deployment
	Expect(kubernetes.Get(ctx, name, &deployment)).To(Succeed())
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"heliostat.test/replaced":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	Expect(kubernetes.Patch(ctx, &deployment, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	eventually(ctx, "other servers", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, name, &deployment)
		status := deployment.Status
		if err == nil && (status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas != int32(replicas) || status.Replicas != int32(replicas) ||
			status.AvailableReplicas != int32(replicas)) {
			err = fmt.Errorf("the Deployment says %+v", status)
		}
		return err
	})
}

// certified waits until the server shows a certificate for the name of its page: a kubelet writes the files of a changed
// Secret within about a minute.
func certified(ctx context.Context) {
	GinkgoHelper()
	way := tls.Dialer{Config: named(ctx)}
	eventually(ctx, "a certificate for "+pageName, func(ctx context.Context) error {
		connection, err := way.DialContext(ctx, "tcp", net.JoinHostPort(clusterIP(ctx, serverName), "8444"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// named returns what a client needs to know the server by the name of its page.
func named(ctx context.Context) *tls.Config {
	GinkgoHelper()
	authority := x509.NewCertPool()
	Expect(authority.AppendCertsFromPEM(serverAuthority(ctx))).To(BeTrue())
	return &tls.Config{RootCAs: authority, ServerName: pageName, MinVersion: tls.VersionTLS12}
}

// crowdThrough sends requests to a service through the proxy, from each node.
func (s *service) crowdThrough(ctx context.Context, token string, rates ...string) *crowd {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	authority, secret := filepath.Join(directory, "ca.crt"), filepath.Join(directory, "token")
	Expect(os.WriteFile(authority, serverAuthority(ctx), 0o600)).To(Succeed())
	Expect(os.WriteFile(secret, []byte(token), 0o600)).To(Succeed())
	through := &service{NamespacedName: types.NamespacedName{Name: pageName}}
	through.address = fmt.Sprintf("https://%s/services/%s/%s", net.JoinHostPort(clusterIP(ctx, serverName), "8444"), s.Namespace, s.Name)
	return through.crowd(ctx, append([]string{"-authority", authority, "-token-file", secret}, rates...)...)
}

// proxiedCounts returns how often the service is upgraded, and how many requests it gets at least.
func proxiedCounts() (upgrades, requests int) {
	if *full {
		return 3, 20_000
	}
	return 1, 100
}

var _ = Describe("a service through the dashboard proxy", Ordered, Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	var s *service
	var token string

	BeforeAll(func(ctx SpecContext) {
		// What requests no CPU gets a hundredth of a node whose CPUs are all in use, and would answer nobody for half a minute.
		withDashboards(ctx, "--set-string", "server.resources.requests.cpu=200m")
		t := serviced(ctx)
		s = t.applies(ctx, "echo", "services/own.yaml", nil)
		s.edit(ctx, letIn(v1beta1.ServePeer{Server: &v1beta1.ServerPeer{}},
			v1beta1.ServePeer{NetworkPolicyPeer: networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: outside(ctx)}}}))
		s.serves(ctx)
		certified(ctx)
		token = editor(ctx, t.namespace)
	}, NodeTimeout(servingTime))

	It("loses no request, stream or WebSocket through an upgrade", func(ctx SpecContext) {
		upgrades, requests := proxiedCounts()
		rates := fewOfAll
		if *full {
			// Two cores have to start the pods of each upgrade beside these, and answer in 10 s.
			rates = []string{"-fresh", "1.5", "-kept", "8", "-long", "0.2", "-stream", "0.1", "-websocket", "0.1"}
		}
		clients, direct := s.crowdThrough(ctx, token, rates...), s.crowd(ctx, rates...)
		for round := range upgrades {
			otherImage(ctx, s, "", fmt.Sprint(2+round))
			s.serves(ctx)
			s.alone(ctx)
		}
		Expect(live.Until(ctx, 3*servingTime, "as many requests", func(context.Context) error {
			sent := 0
			for _, report := range clients.reports() {
				count, _, _ := report.Total()
				sent += count
			}
			if sent < requests {
				return fmt.Errorf("%d were sent", sent)
			}
			return nil
		})).To(Succeed())
		reports, err := clients.end()
		Expect(err).NotTo(HaveOccurred())
		beside, err := direct.end()
		Expect(err).NotTo(HaveOccurred())
		seen, versions := live.ProxiedService{Sorts: map[string]int{}, Upgrades: upgrades}, map[string]bool{}
		for _, report := range reports {
			for _, phase := range report.Phases {
				for sort, count := range phase.Sorts {
					seen.Sent, seen.Failed = seen.Sent+count.Sent, seen.Failed+count.Sent-count.Answered
					seen.Sorts[string(sort)] += count.Sent
					for version := range count.Versions {
						versions[version] = true
					}
					GinkgoWriter.Printf("%s: %+v\n", sort, count.Failures)
				}
			}
		}
		seen.Versions = len(versions)
		for _, report := range beside {
			sent, answered, _ := report.Total()
			seen.DirectSent, seen.DirectFailed = seen.DirectSent+sent, seen.DirectFailed+sent-answered
		}
		GinkgoWriter.Println(seen)
		AddReportEntry(live.ProxiedServiceEntry, seen, ReportEntryVisibilityAlways)
		Expect(seen.Failed).To(BeZero())
		Expect(seen.Versions).To(Equal(1 + upgrades))
	}, Label(live.ProxiedServiceLabel), SpecTimeout(5*servingTime))

	It("is reached through it alone where its only peer is the server", func(ctx SpecContext) {
		worker := s.alone(ctx).workers(ctx, 2)[0]
		neighbour, beside := bystander(ctx, s.Namespace), bystander(ctx, live.ReleaseNamespace)
		DeferCleanup(kill, &beside)
		s.edit(ctx, letIn())
		eventuallyReached(ctx, &neighbour, &worker, "Client", "Dashboard", "Metrics", "Serve") // by default
		s.edit(ctx, letIn(v1beta1.ServePeer{Server: &v1beta1.ServerPeer{}}))
		eventuallyReached(ctx, &neighbour, &worker, "Client", "Dashboard", "Metrics")
		Expect(reached(ctx, &beside, &worker)).To(BeEmpty(), "a pod beside the server")
		server := entered(ctx)
		Expect(reached(ctx, &server, &worker)).To(ContainElement("Serve"))
		Expect(s.answerThrough(ctx, token)).To(ContainSubstring(`"said":"hello"`))

		s.edit(ctx, letIn(v1beta1.ServePeer{NetworkPolicyPeer: networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: outside(ctx)}}}))
		replaceServers(ctx, 1) // a policy ends no connection, and the server keeps those that it has
		eventually(ctx, "the server to be kept out", func(ctx context.Context) error {
			if said := s.answerThrough(ctx, token); !strings.Contains(said, "cannot be connected to") {
				return fmt.Errorf("it said %s", said)
			}
			return nil
		})
	}, Label(live.ProxiedPeerLabel), SpecTimeout(2*limit))
})

// letIn edits whom a service lets in.
func letIn(peers ...v1beta1.ServePeer) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		if spec.Service == nil {
			spec.Service = &v1beta1.ServeService{}
		}
		spec.Service.AllowFrom = peers
		return nil
	}
}

// answerThrough asks a service through the proxy, over a connection of its own, and returns what it says.
func (s *service) answerThrough(ctx context.Context, token string) string {
	GinkgoHelper()
	way := &http.Transport{DisableKeepAlives: true, TLSClientConfig: named(ctx)}
	url := fmt.Sprintf("https://%s/services/%s/%s/?said=hello", net.JoinHostPort(clusterIP(ctx, serverName), "8444"), s.Namespace, s.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := way.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
