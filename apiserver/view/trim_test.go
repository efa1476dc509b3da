package view_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// heldMeta are the fields of the metadata that are held of each object.
const heldMeta = "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp labels name namespace ownerReferences resourceVersion uid"

// held is an empty object, and the fields that are held of its kind.
type held struct {
	object       view.Object
	spec, status string
}

// allHeld are the fields that are held of the kinds: docs/design/server-view.md says who reads them. A new field is dropped until
// it is named here and in Trim.
func allHeld() map[string]held {
	return map[string]held{
		"ComputeCluster": {
			&v1beta1.ComputeCluster{}, "authentication controlStore managedBy suspend workerGroups", "conditions epoch groups head phase",
		},
		"ClusterJob": {
			&v1beta1.ClusterJob{}, "clusterRef gang managedBy tune", "attempt attempts clusterName conditions endTime gang ownCluster phase startTime tune",
		},
		"ClusterJobSchedule": {
			&v1beta1.ClusterJobSchedule{}, "", "activeJobs conditions lastScheduleTime nextScheduleTime",
		},
		"ClusterService": {
			&v1beta1.ClusterService{}, "clusterRef managedBy serveConfig suspend",
			"active candidate conditions lastUpgrade phase retiring",
		},
		"Pod": {
			&corev1.Pod{}, "containers initContainers nodeName readinessGates schedulerName schedulingGates",
			"conditions containerStatuses initContainerStatuses message nominatedNodeName phase podIP reason startTime",
		},
	}
}

// TestTrim_HoldsWhatIsRead walks over each field that there is, and has texts of a spec with 1 MiB in all.
func TestTrim_HoldsWhatIsRead(t *testing.T) {
	const mostHeld = 32 << 10
	for kind, c := range allHeld() {
		fill(reflect.ValueOf(c.object).Elem(), strings.Repeat("x", 1<<10), 0)
		c.object.SetName("n")
		c.object.SetNamespace("n")
		c.object.SetUID("u")
		c.object.SetResourceVersion("1")
		owners := make([]metav1.OwnerReference, 1000, 1001)
		c.object.SetOwnerReferences(append(owners, *metav1.NewControllerRef(job("n", "j", 1), v1beta1.GroupVersion.WithKind("ClusterJob"))))
		c.object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		c.object.SetLabels(manyLabels())
		c.object.SetAnnotations(map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 200<<10), "heliostat.dev/other": strings.Repeat("x", 200<<10),
			v1beta1.AnnotationOwner: strings.Repeat("ä", 20<<10), v1beta1.AnnotationRevisionCluster: "3",
		})
		if service, is := c.object.(*v1beta1.ClusterService); is {
			service.Spec.ServeConfig.Raw = fmt.Appendf(nil, `{"http_options": {"port": 8001, "ssl_certfile": %q, "x": 1}, "applications": [%q]}`,
				strings.Repeat("c", 1<<10), strings.Repeat("a", 1<<20))
		}
		whole := fieldsOf(t, c.object)
		if size := len(text(t, whole["spec"])); size < 32<<10 {
			t.Fatalf("%s: a spec of %d bytes is no large one", kind, size)
		}
		view.Trim(c.object)
		once := fieldsOf(t, c.object)
		for part, want := range map[string]string{"ObjectMeta": heldMeta, "Spec": c.spec, "Status": c.status} {
			if diff := cmp.Diff(want, namesOf(reflect.ValueOf(c.object).Elem().FieldByName(part))); diff != "" {
				t.Errorf("%s: %s (-want +got): %s", kind, part, diff)
			}
		}
		delete(once, "status") // the operator and kubelets write it, and bound it
		if size := len(text(t, once)); size > mostHeld {
			t.Errorf("%s: %d bytes are held", kind, size)
		}
		view.Trim(c.object)
		again := fieldsOf(t, c.object)
		delete(again, "status")
		if diff := cmp.Diff(once, again); diff != "" {
			t.Errorf("%s: it is trimmed again: %s", kind, diff)
		}
	}
}

// TestTrim_KeepsWhatServicesAreCalledBy has texts of serveConfig, and what is held of them.
func TestTrim_KeepsWhatServicesAreCalledBy(t *testing.T) {
	for config, want := range map[string]string{
		`{"applications": [{"name": "a"}]}`:                           `{"http_options":{}}`,
		`{"http_options": {"port": 8001, "root_path": "/x"}}`:         `{"http_options":{"port":8001}}`,
		`{"http_options": {"ssl_certfile": "/a/very/long/path.pem"}}`: `{"http_options":{"ssl_certfile":"set"}}`,
		`{"http_options": {"port": "x"}}`:                             ``,
		`x`:                                                           ``,
		``:                                                            ``,
	} {
		one := service("a", "s", 1)
		one.Spec.ServeConfig.Raw = []byte(config)
		view.Trim(one)
		if got := string(one.Spec.ServeConfig.Raw); got != want {
			t.Errorf("of %q it holds %q, want %q", config, got, want)
		}
	}
}

// TestTrim_KeepsOurLabels beside more of users than are held.
func TestTrim_KeepsOurLabels(t *testing.T) {
	one := job("a", "j", 1)
	one.Labels = manyLabels()
	one.Labels[v1beta1.LabelSchedule] = "nightly"
	view.Trim(one)
	if one.Labels[v1beta1.LabelSchedule] != "nightly" || one.Labels["a0000"] == "" || one.Labels["a2000"] != "" {
		t.Errorf("it holds %v", one.Labels)
	}
}

// manyLabels are 128 KiB of labels.
func manyLabels() map[string]string {
	all := map[string]string{}
	for i := range 2048 {
		all[fmt.Sprintf("a%04d", i)] = strings.Repeat("v", 60)
	}
	return all
}

// fillWhole gives a value one of its own where its type has a form of its own in JSON.
func fillWhole(value reflect.Value, text string) bool {
	switch at := value.Addr().Interface().(type) {
	case *metav1.Time:
		*at = metav1.NewTime(began)
	case *resource.Quantity:
		*at = resource.MustParse("1")
	case *intstr.IntOrString:
		*at = intstr.FromInt32(1)
	case *metav1.FieldsV1:
		at.SetRawBytes([]byte("{}"))
	case *runtime.RawExtension:
		at.Raw = []byte(`{"a": "` + text + `"}`)
	case *metav1.Duration:
		at.Duration = time.Second
	default:
		return false
	}
	return true
}

// fill gives each field below a value one of its own.
func fill(value reflect.Value, text string, depth int) {
	if fillWhole(value, text) || depth > 12 {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), text, depth+1)
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Field(i).CanSet() {
				fill(value.Field(i), text, depth+1)
			}
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), text, depth+1)
	case reflect.Map:
		one, of := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(one, "key", depth+1)
		fill(of, text, depth+1)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(one, of)
	case reflect.String:
		value.SetString(text)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(1)
	case reflect.Uint8:
		value.SetUint(1)
	case reflect.Float64:
		value.SetFloat(1)
	}
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fieldsOf(t *testing.T, object view.Object) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(text(t, object), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// namesOf returns the names of the fields that have a value.
func namesOf(part reflect.Value) string {
	var all []string
	for i := range part.NumField() {
		if name, _, _ := strings.Cut(part.Type().Field(i).Tag.Get("json"), ","); !part.Field(i).IsZero() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
