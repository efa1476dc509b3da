package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// kubectl prepares to run it as a user would.
func kubectl(ctx context.Context, args ...string) *osexec.Cmd {
	GinkgoHelper()
	program := os.Getenv("KUBECTL")
	Expect(program).NotTo(BeEmpty(), "KUBECTL names no kubectl: run make e2e, or leave out what has the label "+localkubeLabel)
	return osexec.CommandContext(ctx, program, args...)
}

// opensChannel opens a gRPC channel to a service, over which it answers.
func (s *service) opensChannel(ctx context.Context) *grpc.ClientConn {
	GinkgoHelper()
	channel, err := grpc.NewClient(s.grpcAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(channel.Close)
	var said wrapperspb.StringValue // as Serve's HealthzResponse, which has one field, a string
	Expect(channel.Invoke(ctx, "/ray.serve.RayServeAPIService/Healthz", &emptypb.Empty{}, &said)).To(Succeed())
	Expect(said.Value).To(Equal("success"))
	return channel
}

// grpcAddress returns the host and port at which a service speaks gRPC.
func (s *service) grpcAddress() string {
	GinkgoHelper()
	host, _, err := net.SplitHostPort(strings.TrimPrefix(s.address, "http://"))
	Expect(err).NotTo(HaveOccurred())
	return net.JoinHostPort(host, "9000")
}

// A service from its first minute to its end.
var _ = Describe("a service on its own cluster", Ordered, Label(serviceLabel, localkubeLabel), func() {
	var t *team
	var s *service
	var neighbour corev1.Pod

	BeforeAll(func(ctx SpecContext) { t = serviced(ctx) }, NodeTimeout(limit))

	It("has its Service at once, and says that it is ready when it answers and not before", func(ctx SpecContext) {
		begin := time.Now()
		s = t.applies(ctx, "plain", "services/own.yaml", values{"GRPC": true})
		told("service applied to its Service", begin)
		Expect(has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(s.now(ctx))).NotTo(Succeed(), "nobody answers yet")
		ready := s.serves(ctx)
		said, err := s.ask(ctx, "/?said=hello")
		Expect(err).NotTo(HaveOccurred())
		told("service applied to Ready", begin)
		Expect(said.Version).To(Equal("1"))
		Expect(said.Said).To(Equal("hello"))
		Expect(s.processes(ctx, "/")).To(HaveLen(2))

		active := ready.Status.Active
		Expect(active.TrafficPercent).To(BeEquivalentTo(100))
		Expect(active.ReadyEndpoints).To(BeEquivalentTo(2), "the workers, and not the head")
		Expect(active.Healthy).To(BeTrue())
		Expect(active.Revision).To(BeEquivalentTo(1))
		Expect(active.ClusterName).To(Equal(s.alone(ctx).Name))
		Expect(active.Applications).To(ConsistOf(v1beta1.ApplicationStatus{Name: "echo", State: "RUNNING", RoutePrefix: "/", RunningReplicas: 2, DesiredReplicas: 2}))
		Expect(ready.Status.URL).To(Equal(fmt.Sprintf("http://plain.%s.svc:8000", t.namespace)))
		Expect(ready.Status.Summary).To(Equal(v1beta1.ServiceSummary{Version: "1", Traffic: "100%", Applications: "1/1"}))
	}, SpecTimeout(servingTime))

	It("lets in pods of its namespace, and of another once allowFrom names it", func(ctx SpecContext) {
		neighbour = bystander(ctx, t.namespace)
		stranger := bystander(ctx, fresh(ctx))
		worker := s.alone(ctx).workers(ctx, 2)[0]
		Expect(reached(ctx, &neighbour, &worker)).To(ContainElement("Serve"))
		Expect(reached(ctx, &stranger, &worker)).To(BeEmpty())
		s.edit(ctx, func(spec *v1beta1.ClusterServiceSpec) error {
			there := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: stranger.Namespace}}
			spec.Service.AllowFrom = append(spec.Service.AllowFrom,
				v1beta1.ServePeer{NetworkPolicyPeer: networkingv1.NetworkPolicyPeer{NamespaceSelector: there}})
			return nil
		})
		eventuallyReached(ctx, &stranger, &worker, "Serve")
	}, SpecTimeout(limit))

	It("leads an additional port to what listens beside Serve", func(ctx SpecContext) {
		for _, worker := range s.alone(ctx).workers(ctx, 2) {
			exec(ctx, &worker, "sh", "-c", "cd /code && nohup python3 -m http.server 9100 >/dev/null 2>&1 &")
		}
		s.edit(ctx, func(spec *v1beta1.ClusterServiceSpec) error {
			spec.Service.Ports = append(spec.Service.Ports, v1beta1.ServePort{Name: "files", Port: 81, TargetPort: 9100})
			return nil
		})
		address := fmt.Sprintf("http://plain.%s.svc:81/a/", t.namespace)
		eventually(ctx, "an answer at the additional port", func(ctx context.Context) error {
			said, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(&neighbour), v1beta1.ContainerRay, "python3", "-c",
				"import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=2).read().decode())", address)
			if err == nil && !strings.Contains(said, "echo.py") {
				err = fmt.Errorf("it answers %s", said)
			}
			return err
		})
	}, SpecTimeout(limit))

	It("speaks gRPC on another port of the same address", func(ctx SpecContext) {
		s.opensChannel(ctx)
	}, SpecTimeout(limit))

	It("is called, watched and read by the command line", func(ctx SpecContext) {
		code, said := commandLine(ctx, t.namespace, "service", "call", "plain", "/?said=typed")
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring(`"said":"typed"`))
		code, said = commandLine(ctx, t.namespace, "service", "rollout", "history", "plain")
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(MatchRegexp(`\n1 +\S+ +active +100 %`))
		code, _ = commandLine(ctx, t.namespace, "service", "rollout", "status", "plain", "--timeout", "1m")
		Expect(code).To(Equal(outcome.Done))
		code, said = commandLine(ctx, t.namespace, "logs", "service/plain", "--deployment", "Echo")
		Expect(code).To(Equal(outcome.Done))
		Expect(strings.Count(said, "GET /")).To(BeNumerically(">=", 1), "Serve writes a line for each request")
		code, _ = commandLine(ctx, t.namespace, "logs", "service/plain", "--deployment", "Ecco")
		Expect(code).To(Equal(outcome.Usage))
	}, SpecTimeout(limit))

	It("is shown by kubectl get csvc, and reached by kubectl port-forward", func(ctx SpecContext) {
		out, err := kubectl(ctx, "get", "csvc", "-n", t.namespace).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(MatchRegexp(`NAME +READY +VERSION +TRAFFIC +APPS +REASON +AGE\nplain +True +1 +100% +1/1 +ServiceServes +\S+\n`))

		forwarding, stop := context.WithCancel(ctx)
		defer stop()
		command := kubectl(forwarding, "port-forward", "-n", t.namespace, "service/plain", ":8000")
		lines, err := command.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		first, err := bufio.NewReader(lines).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(first)
		Expect(address).NotTo(BeEmpty(), first)
		near := &service{NamespacedName: s.NamespacedName, address: "http://" + address}
		Expect(near.ask(ctx, "/?said=near")).To(HaveField("Said", "near"))
		stop()
		_ = command.Wait() // it was told to end
	}, SpecTimeout(limit))

	It("goes on when a worker is lost, and when the operator is away", func(ctx SpecContext) {
		cluster := s.alone(ctx)
		scaleOperator(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleOperator(ctx, 1) }, NodeTimeout(limit))
		workers := cluster.workers(ctx, 2)
		kill(ctx, &workers[0])
		gone(ctx, &workers[0])
		eventually(ctx, "the other worker alone to answer", func(ctx context.Context) error {
			for range 10 {
				if _, err := s.ask(ctx, "/"); err != nil {
					return err
				}
			}
			return nil
		})
		scaleOperator(ctx, 1)
		eventually(ctx, "another worker to take requests", func(ctx context.Context) error {
			pods, err := kubernetes.PodsOf(ctx, cluster.NamespacedName, v1beta1.RoleWorker)
			open := 0
			for i := range pods {
				if pods[i].UID != workers[0].UID && pods[i].Labels[v1beta1.LabelServePrefix+s.Name] == v1beta1.ServeOn {
					open++
				}
			}
			if err == nil && open != 2 {
				err = fmt.Errorf("%d do", open)
			}
			return err
		})
		s.serves(ctx)
	}, SpecTimeout(servingTime))

	It("answers what it was asked before it is deleted, and leaves nothing", func(ctx SpecContext) {
		answers := make(chan error, 1)
		go func() {
			_, err := s.ask(ctx, fmt.Sprintf("/slow?s=%d", longest()+1))
			answers <- err
		}()
		// It is under way when a later one has been answered.
		Expect(s.ask(ctx, "/slow?s=1")).To(HaveField("Version", "1"))
		cluster, channel := s.alone(ctx), s.opensChannel(ctx)
		ended := make(chan []corev1.Pod, 1)
		go func() {
			defer GinkgoRecover()
			channel.WaitForStateChange(ctx, connectivity.Ready)
			pods, err := kubernetes.PodsOf(ctx, cluster.NamespacedName, v1beta1.RoleWorker)
			Expect(err).NotTo(HaveOccurred())
			ended <- pods
		}()
		begin := time.Now()
		s.remove(ctx)
		told("service deleted to gone", begin)
		Eventually(ctx, answers, limit).Should(Receive(Succeed()))
		var workers []corev1.Pod
		Expect(ended).To(Receive(&workers), "the gRPC channel ended")
		Expect(workers).To(HaveLen(2), "before the pods did")
		Expect(workers).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))
		Expect(kubernetes.UntilGone(ctx, cluster.NamespacedName, limit)).To(Succeed())
		var left corev1.ServiceList
		Expect(kubernetes.List(ctx, &left, client.InNamespace(t.namespace))).To(Succeed())
		Expect(left.Items).To(BeEmpty())
	}, SpecTimeout(servingTime))
})
