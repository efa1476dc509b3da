package logs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// podChoice says which pods of a cluster are meant; without a group and a pod it is the head's.
type podChoice struct{ group, pod string }

// choose returns the names of the pods that are meant, in order.
func (p podChoice) choose(cluster *v1beta1.ComputeCluster, pods []corev1.Pod) ([]string, error) {
	var chosen, names, groups []string
	for i := range pods {
		pod := &pods[i]
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != cluster.UID {
			continue
		}
		names = append(names, pod.Name)
		if p.isOf(pod) {
			chosen = append(chosen, pod.Name)
		}
	}
	for _, group := range cluster.Spec.WorkerGroups {
		groups = append(groups, group.Name)
	}
	slices.Sort(chosen)
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case p.pod != "":
		return nil, outcome.Errorf(outcome.Usage, "cluster/%s has no pod %q; %s", cluster.Name, p.pod, spelling.Remedy(p.pod, names))
	case p.group != "" && !slices.Contains(groups, p.group):
		return nil, outcome.Errorf(outcome.Usage, "cluster/%s has no worker group %q; %s", cluster.Name, p.group,
			spelling.Remedy(p.group, groups))
	}
	return nil, outcome.Errorf(outcome.Refused, "cluster/%s has no such pod now; see %s", cluster.Name,
		console.Again(cluster.Namespace, "why cluster/%s", cluster.Name))
}

// isOf reports whether a pod is meant.
func (p podChoice) isOf(pod *corev1.Pod) bool {
	switch {
	case p.pod != "":
		return pod.Name == p.pod
	case p.group != "":
		return pod.Labels[v1beta1.LabelGroup] == p.group
	}
	return pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead
}

// flags are the choice as a user types it.
func (p podChoice) flags() []string {
	switch {
	case p.pod != "":
		return []string{"--pod", p.pod}
	case p.group != "":
		return []string{"--group", p.group}
	}
	return nil
}

// podOutput is what Ray's containers of a cluster write.
type podOutput struct {
	console    *console.Console
	objects    *kube.Objects
	cluster    *v1beta1.ComputeCluster
	choice     podChoice
	isFollowed bool

	// mu guards standard output, so that lines stay whole.
	mu sync.Mutex
}

// print prints the logs one after another, or as they come where they are followed.
func (o *podOutput) print(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := o.objects.List(ctx, pods, client.InNamespace(o.cluster.Namespace),
		client.MatchingLabels{v1beta1.LabelCluster: o.cluster.Name}); err != nil {
		return kube.Because(fmt.Errorf("list pods of cluster %s: %w", o.cluster.Name, err))
	}
	chosen, err := o.choice.choose(o.cluster, pods.Items)
	if err != nil {
		return err
	}
	if !o.isFollowed {
		for _, pod := range chosen {
			if _, err := o.stream(ctx, pod, len(chosen) > 1, time.Time{}); err != nil {
				return err
			}
		}
		return nil
	}
	failures := make([]error, len(chosen))
	var all sync.WaitGroup
	for i, pod := range chosen {
		all.Go(func() { failures[i] = o.follow(ctx, pod, len(chosen) > 1) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return detached(o.cluster, o.choice.flags()...)
	}
	return errors.Join(failures...)
}

// follow prints the log of a pod until its container has ended.
func (o *podOutput) follow(ctx context.Context, pod string, isNamed bool) error {
	kubelet := patience{console: o.console, who: "the API server", what: "pod " + pod,
		again: console.Again(o.cluster.Namespace, "logs cluster/%s --pod %s -f", o.cluster.Name, pod)}
	for last := (time.Time{}); ; {
		reached, err := o.stream(ctx, pod, isNamed, last)
		if reached.After(last) {
			last = reached
			kubelet.silence.Broken()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			isOver, failed := o.isOver(ctx, pod)
			if isOver {
				return nil
			}
			err = cmp.Or(failed, errEnded)
		case !kube.IsPassing(err):
			return err
		}
		if err := kubelet.rest(ctx, err); err != nil {
			return err
		}
	}
}

var errEnded = errors.New("the connection ended")

// isOver reports whether no output of a pod comes any more, and says so.
func (o *podOutput) isOver(ctx context.Context, name string) (bool, error) {
	pod := &corev1.Pod{}
	err := o.objects.Get(ctx, client.ObjectKey{Namespace: o.cluster.Namespace, Name: name}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, kube.Because(fmt.Errorf("read pod %s: %w", name, err))
	}
	if err == nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		return false, nil
	}
	o.console.Note("pod %s has ended", name)
	return true, nil
}

// stream prints the log of a pod behind a time, and returns that of the last line.
func (o *podOutput) stream(ctx context.Context, pod string, isNamed bool, after time.Time) (time.Time, error) {
	of := console.Container{Pod: types.NamespacedName{Namespace: o.cluster.Namespace, Name: pod}, Name: v1beta1.ContainerRay}
	stream, err := o.console.StreamLog(ctx, of, after, o.isFollowed)
	if err != nil {
		return after, err
	}
	defer func() { _ = stream.Close() }() // it was read
	for lines := bufio.NewReader(stream); ; {
		line, err := lines.ReadString('\n')
		at, text, isNew := cutTime(line, after)
		if isNew {
			if err := o.write(pod, text, isNamed); err != nil {
				return after, err
			}
			after = at
		}
		switch {
		case errors.Is(err, io.EOF):
			return after, nil
		case err != nil:
			return after, fmt.Errorf("read the log of pod %s: %w", pod, err)
		}
	}
}

// cutTime cuts the time from a line, and reports whether it is a whole line behind another time.
func cutTime(line string, after time.Time) (at time.Time, text string, isNew bool) {
	stamp, text, hasStamp := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return at, text, hasStamp && err == nil && at.After(after) && strings.HasSuffix(line, "\n")
}

func (o *podOutput) write(pod, text string, isNamed bool) error {
	if isNamed {
		text = pod + ": " + text
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := io.WriteString(o.console.Out, text); err != nil {
		return outcome.Errorf(outcome.Failed, "print the log: %w", err)
	}
	return nil
}
