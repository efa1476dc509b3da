package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Retry returns a job with the spec of one that has ended. Its name is a function of that job, so that the same call
// finds the job that it created.
func Retry(object Object) (Change, error) {
	job, is := object.(*v1beta1.ClusterJob)
	if !is {
		return Change{}, unsuited("retry", "jobs")
	}
	if !hasEnded(job) {
		return Change{}, forbid("JobNotEnded", "the job has not ended, and retries by itself as spec.retry says",
			"wait for its end, or stop it first")
	}
	root := job.Annotations[v1beta1.AnnotationRetryOf]
	if root == "" {
		root = job.Name
	}
	another := &v1beta1.ClusterJob{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterJob"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: naming.Retry(root, job.UID),
			Labels: ofUsers(job.Labels), Annotations: ofUsers(job.Annotations),
		},
		Spec: *job.Spec.DeepCopy(),
	}
	if another.Annotations == nil {
		another.Annotations = map[string]string{}
	}
	another.Annotations[v1beta1.AnnotationRetryOf] = root
	another.Spec.Suspend = nil
	return Change{New: another}, nil
}

// ofUsers returns labels or annotations without ours and those of kubectl, which are about one object.
func ofUsers(all map[string]string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool {
		return strings.HasPrefix(key, "heliostat.dev/") || key == corev1.LastAppliedConfigAnnotation
	})
	return all
}

// version is what of a service a ControllerRevision of the operator keeps.
type version struct {
	ServeConfig json.RawMessage `json:"serveConfig"`
	Template    json.RawMessage `json:"template,omitempty"`
}

// Undo returns the change that gives a service the spec of an earlier version: the one with a number. Without a number it is
// the active version where the spec asks for another one, else the newest one before it.
func Undo(object Object, kept []*appsv1.ControllerRevision, number string) (Change, error) {
	service, is := object.(*v1beta1.ClusterService)
	if !is {
		return Change{}, unsuited("undo", "services")
	}
	if active := activeVersion(service); number == "" && active != 0 {
		change, err := returnTo(service, kept, strconv.FormatInt(active, 10))
		if err == nil && !change.IsNothing() {
			return change, nil
		}
	}
	return returnTo(service, kept, number)
}

// activeVersion returns the number of the version that has the requests, 0 where there is none.
func activeVersion(service *v1beta1.ClusterService) int64 {
	if service.Status.Active == nil {
		return 0
	}
	return service.Status.Active.Revision
}

// returnTo returns the change to a version: the one with a number, or the newest one before that which is active.
func returnTo(service *v1beta1.ClusterService, kept []*appsv1.ControllerRevision, number string) (Change, error) {
	found, err := findVersion(service, kept, number)
	if err != nil {
		return Change{}, err
	}
	var former version
	if err := json.Unmarshal(found.Data.Raw, &former); err != nil {
		return Change{}, fmt.Errorf("read ControllerRevision %s: %w", found.Name, err)
	}
	operations := []operation{{"replace", "/spec/serveConfig", former.ServeConfig}}
	same := isSame(former.ServeConfig, service.Spec.ServeConfig.Raw)
	if len(former.Template) > 0 && service.Spec.ClusterTemplate != nil {
		now, err := json.Marshal(service.Spec.ClusterTemplate)
		if err != nil {
			return Change{}, fmt.Errorf("write the template of service %s: %w", service.Name, err)
		}
		operations = append(operations, operation{"replace", "/spec/clusterTemplate", former.Template})
		same = same && isSame(former.Template, now)
	}
	if same {
		return Change{}, nil
	}
	return replace(operations...)
}

// findVersion returns the version to return to.
func findVersion(
	service *v1beta1.ClusterService, kept []*appsv1.ControllerRevision, number string,
) (*appsv1.ControllerRevision, error) {
	kept = slices.Clone(kept)
	slices.SortFunc(kept, func(a, b *appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	active := activeVersion(service)
	numbers := make([]string, 0, len(kept))
	for _, one := range kept {
		text := strconv.FormatInt(one.Revision, 10)
		if text == number || number == "" && one.Revision < active {
			return one, nil
		}
		numbers = append(numbers, text)
	}
	if number == "" {
		return nil, forbid("NoEarlierVersion", "no version before the active one is kept", "edit the spec")
	}
	return nil, forbid("NoSuchVersion", fmt.Sprintf("version %q is not kept", number),
		"give one of "+strings.Join(numbers, ", "))
}

// isSame reports whether two JSON texts say the same.
func isSame(a, b []byte) bool {
	return bytes.Equal(canonical(a), canonical(b))
}

// canonical returns JSON with its keys in order; what is none as it is.
func canonical(text []byte) []byte {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return text
	}
	ordered, err := json.Marshal(value)
	if err != nil { // it came from JSON
		return text
	}
	return ordered
}
