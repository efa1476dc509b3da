package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Canaries are the secrets that an operator makes, and what it and its pods say meanwhile: objects,
// events, notes, logs, metrics, command lines.
type Canaries struct {
	cluster *Cluster

	mutex sync.Mutex
	// secrets are by their value, with where they are kept.
	secrets map[string]string
	said    map[string]*bytes.Buffer
	// lines are command lines that were seen, logs are containers of operators whose log is followed.
	lines, logs map[string]bool
	// ends are containers of operators that ended by themselves, each with how.
	ends map[string]string
	// down has why a kind is not watched now.
	down map[string]error
}

// notOurs stand before secrets in command lines that the operator does not write: Ray hands the password of its Redis
// to its own processes so, and specs ask a Redis with redis-cli.
var notOurs = []string{"--redis-password=", "--redis_password=", "redis-cli\x00--user\x00operator\x00--pass\x00"}

// leastSecret is how many bytes a secret has: what is shorter may stand anywhere by chance.
const leastSecret = 16

// Canaries watches the whole Kubernetes cluster until the context ends. Of each kind it keeps what it sees.
func (c *Cluster) Canaries(ctx context.Context) *Canaries {
	k := &Canaries{
		cluster: c, secrets: map[string]string{}, said: map[string]*bytes.Buffer{},
		lines: map[string]bool{}, logs: map[string]bool{}, ends: map[string]string{}, down: map[string]error{},
	}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.PodList{}, &corev1.ConfigMapList{}, &eventsv1.EventList{},
		&v1beta1.ComputeClusterList{}, &v1beta1.ClusterJobList{}, &v1beta1.ClusterServiceList{},
	} {
		go k.follow(ctx, list)
	}
	go k.readCommands(ctx)
	return k
}

// follow keeps what a watch of a kind tells. The API server ends each watch after a while, and specs may stop it.
func (k *Canaries) follow(ctx context.Context, list client.ObjectList) {
	for pause := time.Tick(time.Second); ctx.Err() == nil; <-pause {
		watch, err := k.cluster.Watch(ctx, list)
		k.note(fmt.Sprintf("%T", list), err)
		if err != nil {
			continue
		}
		for event := range watch.ResultChan() {
			if object, is := event.Object.(client.Object); is {
				k.keep(ctx, object)
			}
		}
	}
}

// note keeps that a kind is watched, or why it is not.
func (k *Canaries) note(kind string, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if delete(k.down, kind); err != nil {
		k.down[kind] = fmt.Errorf("watch %s: %w", kind, err)
	}
}

// keep keeps a secret, or what an object says.
func (k *Canaries) keep(ctx context.Context, object client.Object) {
	ours := object.GetLabels()[v1beta1.LabelCluster] != ""
	switch it := object.(type) {
	case *corev1.Secret:
		if ours {
			k.addSecrets(it)
		}
		return
	case *corev1.Pod:
		if it.Namespace == ReleaseNamespace {
			k.followLogs(ctx, it)
			k.noteEnds(it)
		}
		if !ours {
			return // what users write into their pods is theirs
		}
		it.Status = corev1.PodStatus{Message: it.Status.Message, ContainerStatuses: it.Status.ContainerStatuses}
	case *corev1.ConfigMap:
		if it.Namespace != ReleaseNamespace {
			return
		}
	}
	object.SetManagedFields(nil)
	if text, err := json.Marshal(object); err == nil { // an object of the API always marshals
		k.say(fmt.Sprintf("%T", object), text)
	}
}

// noteEnds keeps how containers of an operator's pod ended that the kubelet started again: nobody deleted them.
func (k *Canaries) noteEnds(pod *corev1.Pod) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.LastTerminationState.Terminated; end != nil {
			k.ends[end.ContainerID] = fmt.Sprintf("%s at %s: exit code %d, %s", pod.Name, end.FinishedAt.UTC(), end.ExitCode, end.Reason)
		}
	}
}

// Ends returns how containers of operators ended by themselves.
func (k *Canaries) Ends() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Sorted(maps.Values(k.ends))
}

// followLogs keeps what each container of an operator's pod says, until it ends.
func (k *Canaries) followLogs(ctx context.Context, pod *corev1.Pod) {
	for _, container := range pod.Status.ContainerStatuses {
		k.mutex.Lock()
		begins := container.State.Running != nil && !k.logs[container.ContainerID]
		if begins {
			k.logs[container.ContainerID] = true
		}
		k.mutex.Unlock()
		if !begins {
			continue
		}
		options := &corev1.PodLogOptions{Container: container.Name, Follow: true}
		request := k.cluster.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options)
		go func() {
			stream, err := request.Stream(ctx)
			if err != nil {
				return // it ended before it was heard
			}
			defer func() { _ = stream.Close() }() // it was read
			for lines := bufio.NewScanner(stream); lines.Scan(); {
				k.say("logs", lines.Bytes())
			}
		}()
	}
}

func (k *Canaries) addSecrets(secret *corev1.Secret) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for key, value := range secret.Data {
		// What Redis takes in place of a password is no secret.
		if len(value) >= leastSecret && key != v1beta1.StoreDigestKey {
			k.secrets[string(value)] = fmt.Sprintf("%s of Secret %s/%s", key, secret.Namespace, secret.Name)
		}
	}
}

func (k *Canaries) say(where string, text []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.said[where] == nil {
		k.said[where] = &bytes.Buffer{}
	}
	k.said[where].Write(text)
	k.said[where].WriteByte('\n')
}

// readCommands keeps the command lines of this machine, those in containers included.
func (k *Canaries) readCommands(ctx context.Context) {
	for ticker := time.Tick(2 * time.Second); ctx.Err() == nil; <-ticker {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
		for _, file := range files {
			line, err := os.ReadFile(file) // a process may have ended
			if err != nil || len(line) == 0 || k.lines[string(line)] {
				continue
			}
			k.lines[string(line)] = true
			k.say("command lines", line)
		}
	}
}

// readMetrics adds the metrics of the operators that are there.
func (k *Canaries) readMetrics(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := k.cluster.List(ctx, pods, client.InNamespace(ReleaseNamespace)); err != nil {
		return fmt.Errorf("list the operators: %w", err)
	}
	operators := k.cluster.Kubernetes.CoreV1().Pods(ReleaseNamespace)
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue
		}
		text, err := operators.ProxyGet("http", pods.Items[i].Name, "8080", "/metrics", nil).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("read the metrics of %s: %w", pods.Items[i].Name, err)
		}
		k.say("metrics", text)
	}
	return nil
}

// Leaks returns where a secret was seen, how many secrets there were, and what was looked at.
func (k *Canaries) Leaks(ctx context.Context) (leaks []string, secrets int, looked string, err error) {
	// A spec may have replaced the operator just now.
	if err := Until(ctx, time.Minute, "the metrics of the operators", k.readMetrics); err != nil {
		return nil, 0, "", err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, where := range slices.Sorted(maps.Keys(k.said)) {
		text := k.said[where].Bytes()
		looked += fmt.Sprintf(" %s: %d KiB;", where, len(text)>>10)
		for secret, kept := range k.secrets {
			if !bytes.Contains(text, []byte(secret)) {
				continue
			}
			others := text
			for _, before := range notOurs {
				others = bytes.ReplaceAll(others, []byte(before+secret), nil)
			}
			if at := bytes.Index(others, []byte(secret)); at >= 0 {
				leaks = append(leaks, fmt.Sprintf("%s is in %s: …%s", kept, where, others[max(0, at-80):at]))
			}
		}
	}
	return leaks, len(k.secrets), looked, errors.Join(slices.Collect(maps.Values(k.down))...)
}
