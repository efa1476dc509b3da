package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// ports that are tried: those that the spec calls by name, Ray's own between nodes (of an
// agent, which every Ray pod has), and one that is nobody's.
var ports = map[string]int{
	"Dashboard": dashboard, "Client": 10001, "Metrics": 8080, "Serve": 8000, "GCS": gcs, "agent": 52365, "nobody's": 4321,
}

// onEvery is what the cluster itself reaches.
var onEvery = slices.Sorted(maps.Keys(ports))

// Two clusters in a namespace, one with a token of the user's and one without any, and
// strangers in this namespace and another.
var _ = Describe("who reaches whom", Ordered, func() {
	var team, open *env
	var head, worker, other, neighbour, stranger corev1.Pod

	BeforeAll(func(ctx SpecContext) {
		namespace, elsewhere := fresh(ctx), fresh(ctx)
		team, open = &env{types.NamespacedName{Namespace: namespace, Name: "team"}}, &env{types.NamespacedName{Namespace: namespace, Name: "team-2"}}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{v1beta1.TokenKey: userToken}}
		Expect(kubernetes.Create(ctx, secret)).To(Succeed())
		undoing(ctx, namespace)
		team.apply(ctx, "clusters/token.yaml", nil)
		open.apply(ctx, "clusters/head.yaml", values{"Authentication": "Disabled"})
		neighbour, stranger = bystander(ctx, namespace), bystander(ctx, elsewhere)
		team.ready(ctx)
		open.ready(ctx)
		head, worker, other = team.head(ctx), team.workers(ctx, 1)[0], open.head(ctx)
	}, NodeTimeout(limit))

	It("is the cluster itself everywhere, its namespace on three ports, and nobody else", func(ctx SpecContext) {
		for _, row := range []struct {
			who  string
			from *corev1.Pod
			to   *corev1.Pod
			on   []string
		}{
			{"the head its worker", &head, &worker, onEvery},
			{"the worker its head", &worker, &head, onEvery},
			{"a neighbour the head", &neighbour, &head, []string{"Client", "Dashboard", "Metrics"}},
			{"a neighbour the worker", &neighbour, &worker, []string{"Client", "Dashboard", "Metrics"}},
			{"another cluster the head", &other, &head, []string{"Client", "Dashboard", "Metrics"}},
			{"the head another cluster", &head, &other, []string{"Client", "Dashboard", "Metrics"}},
			{"another namespace the head", &stranger, &head, nil},
			{"another namespace the worker", &stranger, &worker, nil},
			{"the head a neighbour, who is free", &head, &neighbour, onEvery},
		} {
			Expect(reached(ctx, row.from, row.to)).To(ConsistOf(row.on), row.who)
		}
	}, Label(live.IPv6Label), SpecTimeout(limit))

	It("is the server for portals on the dashboard alone, and nobody beside it", Label(live.PortalNetworkLabel, live.IPv6Label), func(ctx SpecContext) {
		heads := []*corev1.Pod{&head, &other}
		if *full {
			remote := &env{types.NamespacedName{Namespace: stranger.Namespace, Name: "remote"}}
			remote.apply(ctx, "clusters/head.yaml", nil)
			remote.ready(ctx)
			third := remote.head(ctx)
			heads = append(heads, &third)
		}
		server, beside := entered(ctx), bystander(ctx, live.ReleaseNamespace)
		DeferCleanup(kill, &beside)
		for _, to := range heads {
			Expect(reached(ctx, &server, to)).To(ConsistOf("Dashboard"))
			Expect(reached(ctx, &beside, to)).To(BeEmpty())
		}
	}, SpecTimeout(2*limit))

	It("is whom allowFrom lets in as well", func(ctx SpecContext) {
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.Network = &v1beta1.Network{AllowFrom: []v1beta1.IngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: stranger.Namespace}}}},
				Ports: []v1beta1.Port{v1beta1.PortClient, v1beta1.PortServe},
			}}}
		})
		eventuallyReached(ctx, &stranger, &head, "Client", "Serve")
		Expect(reached(ctx, &neighbour, &head)).To(ConsistOf("Client", "Dashboard", "Metrics"))
	}, SpecTimeout(limit))

	It("is itself and DNS alone that a cluster reaches whose allowTo is given", func(ctx SpecContext) {
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{
				{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelCluster: open.Name}}},
			}}}}
		})
		eventuallyReached(ctx, &head, &neighbour)
		eventuallyReached(ctx, &head, &other, "Client", "Dashboard", "Metrics")
		Expect(reached(ctx, &head, &worker)).To(ConsistOf(onEvery))
		Expect(reached(ctx, &worker, &head)).To(ConsistOf(onEvery))
		name := fmt.Sprintf("%s-head.%s.svc", open.Name, open.Namespace)
		Expect(exec(ctx, &worker, "python3", "-c", "import socket, sys; socket.gethostbyname(sys.argv[1]); print('found')", name)).To(ContainSubstring("found"))
		team.ready(ctx)
	}, SpecTimeout(limit))

	It("is who has the user's token, or anyone where there is none", func(ctx SpecContext) {
		Expect(team.ready(ctx).Status.TokenSecretName).To(Equal("mine"))
		closed, free := "http://"+forward(ctx, &head, dashboard), "http://"+forward(ctx, &other, dashboard)
		Expect(get(ctx, closed+"/api/jobs/", "")).To(Equal(http.StatusUnauthorized))
		Expect(get(ctx, closed+"/api/jobs/", userToken)).To(Equal(http.StatusOK))
		Expect(team.alive(ctx, userToken)).To(Equal(2))
		Expect(get(ctx, free+"/api/jobs/", "")).To(Equal(http.StatusOK))
		for _, e := range []*env{team, open} {
			err := kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-token"}, &corev1.Secret{})
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(err).To(HaveOccurred(), "nobody asked for a Secret of the operator's")
		}
	}, SpecTimeout(limit))

	It("is everybody on the dashboard that an Ingress opens, as long as it is there", func(ctx SpecContext) {
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.Network = nil
			spec.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example.com"}
		})
		eventuallyReached(ctx, &stranger, &head, "Dashboard")
		var ingress networkingv1.Ingress
		name := types.NamespacedName{Namespace: team.Namespace, Name: "team-dashboard"}
		Expect(kubernetes.Get(ctx, name, &ingress)).To(Succeed())
		Expect(ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal("team-head"))

		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.Head.Ingress = nil })
		eventuallyReached(ctx, &stranger, &head)
		eventually(ctx, "the Ingress to be gone", func(ctx context.Context) error {
			err := kubernetes.Get(ctx, name, &ingress)
			if err == nil {
				err = errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		Expect(uids(team.pods(ctx, ""))).To(ConsistOf(head.UID, worker.UID), "none of this touches a pod")
	}, SpecTimeout(limit))
})

// userToken is as long as Ray's own tools make one.
const userToken = "0123456789abcdef0123456789abcdef"

// bystander is a pod of nobody's, with Python.
func bystander(ctx context.Context, namespace string) corev1.Pod {
	GinkgoHelper()
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bystander"}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{
			Name: v1beta1.ContainerRay, Image: rayImage, Command: []string{"sleep", "infinity"},
			Resources: corev1.ResourceRequirements{Requests: few},
		}},
	}}
	Expect(kubernetes.Create(ctx, &pod)).To(Succeed())
	eventually(ctx, "a bystander", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
		if err == nil && !isReady(&pod) {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	return pod
}

// entered puts Python into the server's pod until the spec is over. What it sends comes from the server, as others see it.
func entered(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	pod := serverPod(ctx)
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: v1beta1.ContainerRay, Image: rayImage, Command: []string{"sleep", "infinity"}, SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1000))},
	}})
	_, err := kubernetes.Kubernetes.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(ctx, pod.Name, &pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { // it may have been replaced meanwhile
		Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, &pod, client.GracePeriodSeconds(0)))).To(Succeed())
	}, NodeTimeout(limit))
	eventually(ctx, "the container beside the server's", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
		if err == nil && !slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil }) {
			err = errors.New("it does not run")
		}
		return err
	})
	return pod
}

// reached are the ports of a pod that another pod's packets come to, at each of its addresses: someone answers,
// were it to say that nobody listens. What a policy forbids is dropped. A port that is reached at some addresses alone
// comes with them.
func reached(ctx context.Context, from, to *corev1.Pod) []string {
	GinkgoHelper()
	wanted, err := json.Marshal(ports)
	Expect(err).NotTo(HaveOccurred())
	addresses, err := json.Marshal(to.Status.PodIPs)
	Expect(err).NotTo(HaveOccurred())
	out := exec(ctx, from, "python3", "-c", rendered("programs/reached.py", nil), string(addresses), string(wanted))
	var names []string
	Expect(json.Unmarshal([]byte(out), &names)).To(Succeed(), out)
	return names
}

// eventuallyReached waits until an edit of a policy has come to the nodes.
func eventuallyReached(ctx context.Context, from, to *corev1.Pod, on ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) []string { return reached(ctx, from, to) }, limit, "200ms").Should(ConsistOf(on))
}
