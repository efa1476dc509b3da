package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// The states of a note whose cluster is gone, as values of its data and of a metric.
const (
	// StateWaiting: pods are still there, or it was not tried yet.
	StateWaiting = "waiting"
	// StateFailing: it was tried, and is tried again by itself.
	StateFailing = "failing"
	// StateStuck: somebody has to act.
	StateStuck = "stuck"

	// stateDone: the note is gone. stateUnknown: nothing can be said, such as because the
	// API server was away.
	stateDone, stateUnknown = "done", ""
)

// The keys of a note's data that say why the keys are still there.
const (
	keyState   = "state"
	keyWhy     = "why"
	keySince   = "since"
	keyCommand = "command"
	// keyNamespaceGone is since when the cluster's namespace is gone.
	keyNamespaceGone = "namespaceGone"
)

// anyUser stands in a command for the name of an ACL user: it is in a Secret, which may be
// gone, and in no note.
const anyUser = "USER"

// outcome is what came of a try.
type outcome struct {
	state string
	// why is for people, if there is something to tell.
	why string
	// clear tells that neither the cluster nor a pod of it is there.
	clear bool
	// namespaceGone is since when the cluster's namespace is gone, as far as that was asked; empty while it is there.
	namespaceGone string
}

// try is one try to sweep by a note. It reads of its Sweeper what does not change.
type try struct {
	*Sweeper
	kept      *corev1.ConfigMap
	note      Note
	damage    error
	goneSince time.Time
	clear     bool
}

// run tries, and writes into the note what a person gains by knowing.
func (t try) run(ctx context.Context) outcome {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("cluster", t.note.Cluster, "clusterUID", t.note.UID, "note", t.kept.Name))
	limited, stop := context.WithTimeout(ctx, tryLimit)
	defer stop()
	result := t.forsake(limited, t.sweep(limited))
	if result.why == "" || ctx.Err() != nil {
		return result
	}
	written, end := context.WithTimeout(ctx, writeLimit)
	defer end()
	if err := t.tell(written, result); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		log.FromContext(ctx).Error(err, "Cannot record why the keys of a ComputeCluster remain")
	}
	return result
}

// sweep does what can be done by the note now.
func (t try) sweep(ctx context.Context) outcome {
	if t.damage != nil {
		return outcome{state: StateStuck, why: t.damage.Error() + ". Correct it, or remove the cluster's keys by hand and delete this ConfigMap"}
	}
	if !t.clear {
		if left := t.left(ctx); left != nil {
			return *left
		}
	}
	server, err := t.findServer(ctx)
	if isMissing(err) {
		finding, _ := fault.Finding(err)
		return outcome{state: StateStuck, clear: true, why: fmt.Sprintf("the credential is gone: %s. It is sought in namespace %s every %s; "+
			"or remove the keys with the command below and delete this ConfigMap", finding.Text, t.note.Cluster.Namespace, stuckPause)}
	}
	if err != nil {
		return outcome{state: StateFailing, clear: true, why: err.Error()}
	}
	giveBack, err := t.Turns.Take(ctx, t.note.Cluster.Namespace, server.Address)
	if err != nil {
		return outcome{state: StateFailing, clear: true, why: err.Error()}
	}
	defer giveBack()
	removed, err := t.Sweep(ctx, server, t.note.Namespace, t.note.UID)
	finding, told := fault.Finding(err)
	switch {
	case told && finding.Code == reason.StoreInUse.Code: // the other cluster began there after our keys were gone
		log.FromContext(ctx).Info("Nothing to remove: the namespace in Redis now belongs to another cluster", "address", t.note.Address, "rayNamespace", t.note.Namespace)
	case told && slices.Contains(hopeless, finding.Code):
		return outcome{state: StateStuck, clear: true, why: finding.Text}
	case told:
		return outcome{state: StateFailing, clear: true, why: finding.Text}
	case err != nil:
		return outcome{state: StateFailing, clear: true, why: err.Error()}
	default:
		log.FromContext(ctx).Info("Removed the keys of a deleted ComputeCluster", "address", t.note.Address, "rayNamespace", t.note.Namespace, "keys", removed)
	}
	return t.done(ctx)
}

// findServer returns how the Redis is reached: as the Secrets say, and where one is gone, as it was read before.
func (t try) findServer(ctx context.Context) (controlstore.Server, error) {
	server, err := t.note.Server(ctx, t.Live)
	if known, is := t.Credentials.Find(t.note); is && isMissing(err) {
		return known, nil
	}
	return server, err
}

// isMissing reports whether an error is that a Secret or a key of it is not there.
func isMissing(err error) bool {
	finding, told := fault.Finding(err)
	return told && finding.Code == reason.StoreSecretMissing.Code
}

// hopeless are findings of servers that do not get better by themselves. To ask them often would let them keep the
// operator busy.
var hopeless = []string{reason.StoreUnsupported.Code, reason.StoreNotAllowed.Code}

// forsake returns the outcome of a try, or what becomes of a note that nobody can help any more: a day after its
// cluster's namespace it goes, and an event says what is left. Whether the namespace is there is asked where keys could
// not be removed for a while.
func (t try) forsake(ctx context.Context, result outcome) outcome {
	lately := t.kept.Data[keyState] == StateFailing && !isOlder(t.kept.Data[keySince], stuckPause, t.Clock.Now())
	if t.damage != nil || result.state != StateStuck && (result.state != StateFailing || lately || t.kept.Data[keyState] == "") {
		result.namespaceGone = t.kept.Data[keyNamespaceGone]
		return result
	}
	var namespace corev1.Namespace
	switch err := t.Live.Get(ctx, client.ObjectKey{Name: t.note.Cluster.Namespace}, &namespace); {
	case err == nil:
		return result
	case !apierrors.IsNotFound(err):
		result.namespaceGone = t.kept.Data[keyNamespaceGone]
		return result
	}
	result.namespaceGone = cmp.Or(t.kept.Data[keyNamespaceGone], t.Clock.Now().UTC().Format(time.RFC3339))
	if !isOlder(result.namespaceGone, forsakenAfter, t.Clock.Now()) {
		return result
	}
	ended := t.done(ctx)
	if ended.state == stateDone {
		t.Events.Record(t.kept, telemetry.Event{
			Finding: reason.StoreKeysLeft.Of(t.note.Cluster.String(), t.note.Address, result.why, reason.Command(t.command())), Action: "Forsake", Warning: true,
		})
	}
	return ended
}

// isOlder reports whether a time as notes hold it is at least so long ago. A time that cannot be read is not.
func isOlder(text string, age time.Duration, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && now.Sub(at) >= age
}

// done removes the note.
func (t try) done(ctx context.Context) outcome {
	if err := t.Writer.DeleteSeen(ctx, t.kept); err != nil {
		if !apierrors.IsConflict(err) {
			log.FromContext(ctx).Error(err, "Cannot delete a note whose keys are gone")
		}
		return outcome{state: stateUnknown, clear: true}
	}
	t.Metrics.Swept()
	t.Credentials.Forget(t.note.UID)
	return outcome{state: stateDone}
}

// left is the outcome where the cluster or one of its pods is there, or that is not known;
// nil if all are gone.
func (t try) left(ctx context.Context) *outcome {
	there, err := t.living(ctx)
	if err == nil && there {
		return &outcome{state: stateUnknown} // the cache will have it, or its end, in a moment
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = t.remaining(ctx)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		log.FromContext(ctx).Error(err, "Cannot determine whether a ComputeCluster is gone")
		fallthrough
	case err != nil:
		return &outcome{state: stateUnknown}
	case pod == nil:
		return nil
	case t.Clock.Since(t.goneSince) < tellAfter:
		return &outcome{state: StateWaiting}
	}
	why := fmt.Sprintf("pod %s is not gone, and may still write to the Redis. It goes as soon as its node %s says so", pod.Name, pod.Spec.NodeName)
	if pod.Spec.NodeName != "" {
		why += ". If that node is permanently off, taint it: " + reconcile.OffCommand(pod.Spec.NodeName)
	}
	return &outcome{state: StateWaiting, why: why}
}

// living asks the API server whether the cluster is there. Another under its name is not it.
func (t try) living(ctx context.Context) (bool, error) {
	var cluster v1beta1.ComputeCluster
	err := t.Live.Get(ctx, t.note.Cluster, &cluster)
	switch {
	case err == nil:
		return cluster.UID == t.note.UID, nil
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return false, nil
	default: // also a server that does not know the kind just now
		return false, fmt.Errorf("read ComputeCluster %s: %w", t.note.Cluster, err)
	}
}

// remaining is a pod of the cluster that may still run, nil if there is none. Only if the
// cache has none is the API server asked.
func (t try) remaining(ctx context.Context) (*corev1.Pod, error) {
	for _, reader := range []client.Reader{t.Cache, t.Live} {
		var list corev1.PodList
		labels := client.MatchingLabels{v1beta1.LabelCluster: t.note.Cluster.Name}
		if err := reader.List(ctx, &list, client.InNamespace(t.note.Cluster.Namespace), labels); err != nil {
			return nil, fmt.Errorf("list the pods of %s: %w", t.note.Cluster, err)
		}
		for i := range list.Items {
			if harmful, err := t.mayWrite(ctx, &list.Items[i]); err != nil || harmful {
				return &list.Items[i], err
			}
		}
	}
	return nil, nil
}

// mayWrite reports whether a pod with the cluster's label is the cluster's and may still run.
// One without an owner was its: a user who deletes a cluster and orphans its pods lets them run.
func (t try) mayWrite(ctx context.Context, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.UID != t.note.UID || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false, nil
	}
	if t.Nodes == nil || pod.Spec.NodeName == "" {
		return true, nil
	}
	var node corev1.Node
	if err := t.Nodes.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			return false, nil
		}
	}
	return true, nil
}

// command returns the shell command that does by hand what a try does.
func (t try) command() string {
	user := ""
	if t.note.Username.Name != "" {
		user = anyUser
	}
	return t.Command(t.note.Address, user, t.note.Namespace)
}

// tell writes an outcome into the note, if it is not there yet.
func (t try) tell(ctx context.Context, result outcome) error {
	data := map[string]string{keyState: result.state, keyWhy: result.why, keyNamespaceGone: result.namespaceGone}
	if t.damage == nil {
		data[keyCommand] = t.command()
	}
	same := true
	for key, value := range data {
		same = same && t.kept.Data[key] == value
	}
	if same {
		return nil
	}
	changed := t.kept.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	if changed.Data[keyState] != result.state || changed.Data[keySince] == "" {
		changed.Data[keySince] = t.Clock.Now().UTC().Format(time.RFC3339)
		log.FromContext(ctx).Info("The keys of a deleted ComputeCluster remain", "state", result.state, "why", result.why)
	}
	for key, value := range data {
		changed.Data[key] = value
		if value == "" {
			delete(changed.Data, key)
		}
	}
	return t.Writer.Edit(ctx, t.kept, changed)
}
