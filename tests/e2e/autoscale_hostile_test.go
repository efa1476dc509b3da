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
		intruder := team.begin(ctx, rendered("programs/intruder.py", values{"Claim": claim(&head.UID), "Orders": orders(ctx, team, neighbour)}))
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
		impostor := team.begin(ctx, rendered("programs/impostor.py", values{"Words": lies(ctx, team, neighbour)}))
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
