package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	scalelink "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// hostile are the specs of job code that runs in the head of a cluster of zero to three
// workers, has the cluster's token, and wishes nobody well.
func hostile(clusters func() (team, neighbour *env)) {
	It("stays within its bounds while job code gives orders, floods the port and asks for everything", Label(live.AutoscalerTroubleLabel), func(ctx SpecContext) {
		team, neighbour := clusters()
		head := team.head(ctx)
		restarts := head.Status.InitContainerStatuses[0].RestartCount
		team.nowhere(ctx)
		intruder := team.begin(ctx, fmt.Sprintf(intruder, claim(&head.UID), orders(ctx, team, neighbour)))
		team.workers(ctx, 3)
		team.bounded(ctx, 0, intruder)
		var heard int
		intruder.end(ctx, &heard)
		GinkgoWriter.Println(intruder.out)
		Expect(heard).To(BeNumerically(">", 0), "it has the token, so it is heard")
		begin := time.Now()
		team.workers(ctx, 0)
		told("intruder gone to its workers gone", begin)
		Expect(team.head(ctx).Status.InitContainerStatuses[0].RestartCount).To(Equal(restarts), "it was not brought down")
	}, SpecTimeout(limit))

	It("stays within its bounds while job code takes the autoscaler's place", Label(live.AutoscalerTroubleLabel), func(ctx SpecContext) {
		team, neighbour := clusters()
		head := team.head(ctx)
		team.nowhere(ctx)
		team.least(ctx, 1)
		impostor := team.begin(ctx, fmt.Sprintf(impostor, lies(ctx, team, neighbour)))
		impostor.reaches(ctx, &head, "/tmp/waits")
		signal(syscall.SIGKILL, "autoscaler", string(head.UID))
		impostor.reaches(ctx, &head, "/tmp/followed")
		team.workers(ctx, 3)
		team.bounded(ctx, 1, impostor)
		followed := 0
		impostor.end(ctx, &followed)
		Expect(followed).To(BeNumerically(">", 0))
		begin := time.Now()
		team.least(ctx, 0)
		team.workers(ctx, 0)
		told("impostor gone to a worker given back", begin)
		Expect(team.head(ctx).UID).To(Equal(head.UID))
	}, SpecTimeout(limit))
}

// nowhere lets no machine take workers that are made from now on: what is seen is that they
// are made.
func (e *env) nowhere(ctx context.Context) {
	GinkgoHelper()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
		spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"example.com/machine": "none"}}}
	})
}

// least edits the minimum.
func (e *env) least(ctx context.Context, replicas int32) {
	GinkgoHelper()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].MinReplicas = &replicas })
}

// bounded watches until a program ends that there are three workers at most that are not on
// their way out, and no fewer than the minimum with those that are.
func (e *env) bounded(ctx context.Context, least int, w *work) {
	GinkgoHelper()
	eventually(ctx, "the program to end", func(ctx context.Context) error {
		there := e.pods(ctx, v1beta1.RoleWorker)
		staying := 0
		for i := range there {
			if there[i].DeletionTimestamp == nil {
				staying++
			}
		}
		Expect(staying).To(BeNumerically("<=", 3))
		Expect(len(there)).To(BeNumerically(">=", least))
		select {
		case <-w.done:
			return nil
		default:
			return errors.New("it runs")
		}
	})
}

func packed(message proto.Message) string {
	GinkgoHelper()
	data, err := proto.Marshal(message)
	Expect(err).NotTo(HaveOccurred())
	return hex.EncodeToString(data)
}

func claim(head *types.UID) string {
	GinkgoHelper()
	return packed(&scalelink.Claim{Head: string(*head)})
}

// orders are those of an operator that wants all there is, and calls the workers and heads
// of others idle workers of this cluster.
func orders(ctx context.Context, team, neighbour *env) string {
	GinkgoHelper()
	message := &scalelink.Orders{Head: string(team.head(ctx).UID), Pace: scalelink.Pace_PACE_AGGRESSIVE}
	for _, name := range []string{"cpu", "nonsense"} {
		message.Groups = append(message.Groups, &scalelink.Group{Name: name, Min: 5000, Max: 10000, Hosts: 1, Resources: map[string]float64{"CPU": 1e12}})
	}
	for i, pod := range append(team.pods(ctx, ""), neighbour.pods(ctx, "")...) {
		message.Pods = append(message.Pods, &scalelink.Pod{Uid: string(pod.UID), Group: "cpu", Replica: int32(i), Stage: scalelink.Stage_STAGE_READY})
	}
	return packed(message)
}

// lies are the words of an autoscaler that in turn wants all there is and nothing, and gives
// all pods of both clusters back.
func lies(ctx context.Context, team, neighbour *env) string {
	GinkgoHelper()
	var all []string
	for _, replicas := range []int32{10000, 0} {
		word := &scalelink.Word{Head: string(team.head(ctx).UID), Targets: []*scalelink.Target{
			{Group: "cpu", Replicas: replicas, Reason: "I say so"}, {Group: "nonsense", Replicas: 10000},
		}}
		for _, pod := range append(team.pods(ctx, ""), neighbour.pods(ctx, "")...) {
			word.Leaving = append(word.Leaving, &scalelink.Leaver{Pod: string(pod.UID), Node: "00", Reason: scalelink.LeaveReason_LEAVE_REASON_IDLE, Drained: true})
		}
		all = append(all, packed(word))
	}
	return fmt.Sprintf("%q, %q", all[0], all[1])
}

// intruder asks Ray for what nobody has, then follows the autoscaler and gives it orders
// whenever it can, and in the end floods its port. The result is how often it was obeyed.
const intruder = `
import grpc, hmac, threading, time
from ray.autoscaler.sdk import request_resources
claim, orders = bytes.fromhex(%q), bytes.fromhex(%q)
token = open("/var/run/secrets/heliostat.dev/token/auth_token").read()
until = time.time() + 10
def flood():
    time.sleep(6)
    while time.time() < until:
        try:
            with socket.create_connection(("127.0.0.1", 6380), timeout=1) as one:
                for _ in range(64):
                    one.sendall(os.urandom(1 << 16))
        except OSError:
            pass
        time.sleep(0.01)
def demand():
    for bundles in [[{"CPU": 1}] * 20000, [{"CPU": 1e300, "GPU": float("inf")}], [{"CPU": -1}, {"x" * 10000: 1}], [{"CPU": float("nan")}], [{"CPU": 1}] * 100]:
        try:
            request_resources(bundles=bundles)
        except Exception as error:
            print(type(error).__name__, str(error)[:200])
        time.sleep(1)
    time.sleep(max(0, until - time.time() - 1))
    request_resources(bundles=[])
aside = [threading.Thread(target=one) for one in (flood, flood, demand)]
for one in aside:
    one.start()
time.sleep(2)
service, plain = "/heliostat.scalelink.v1.ScaleService/", lambda data: data
result = 0
while time.time() < until:
    with grpc.insecure_channel("127.0.0.1:6380", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            nonce = channel.unary_unary(service + "Challenge", plain, plain)(b"", timeout=1)[2:]
            head = claim[2:] # behind the field's tag and length
            proof = hmac.digest(token.encode(), b"heliostat.scalelink.v1.Follow\0" + nonce + head, "sha256")
            words = channel.unary_stream(service + "Follow", plain, plain)(claim + b"\x12\x20" + proof, timeout=1)
            words.initial_metadata()
            channel.unary_unary(service + "Order", plain, plain)(orders, timeout=1)
            result += 1
            for word in words:
                pass
        except grpc.RpcError as error:
            print(error.code(), error.details())
    time.sleep(0.2)
for one in aside:
    one.join()`

// impostor waits until the port of the autoscaler is free, and then says in its place what
// it likes, for some seconds. The result is how often it was followed.
const impostor = `
import concurrent.futures, grpc, time
words = [bytes.fromhex(word) for word in [%s]]
followed, until = [], time.time() + 60
class Impostor(grpc.GenericRpcHandler):
    def service(self, call):
        if call.method.endswith("/Follow"):
            return grpc.unary_stream_rpc_method_handler(self.follow)
        if call.method.endswith("/Challenge"):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x0a\x20" + bytes(32))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    def follow(self, request, context):
        followed.append(request)
        open("/tmp/followed", "w").close()
        context.send_initial_metadata(())
        yield words[0]
        time.sleep(4)
        while context.is_active():
            for word in words:
                yield word
                time.sleep(0.3)
os.mknod("/tmp/waits")
while time.time() < until:
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[Impostor()], options=[("grpc.so_reuseport", 0)])
    try:
        if server.add_insecure_port("[::]:6380"):
            break
    except RuntimeError:
        time.sleep(0.005)
server.start()
while not followed and time.time() < until:
    time.sleep(0.1)
time.sleep(12)
server.stop(0)
result = len(followed)`
