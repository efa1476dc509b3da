package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestAServiceOnARealAPIServer: it has its objects at once, remembers its last versions and no more, returns to one of
// them, says what it waits for, and leaves nothing. What it does with heads is shown on real Ray.
func TestAServiceOnARealAPIServer(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t)
	namespace := c.namespace
	startOperator(t, "--watch-namespaces="+namespace)
	service := &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"},
		Spec: v1beta1.ClusterServiceSpec{
			ServeConfig: echo(0),
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
				RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(1))}},
			}},
		},
	}
	must(t, shared.Create(t.Context(), service))
	name := client.ObjectKeyFromObject(service)
	waits := func(what string, look func() error) {
		t.Helper()
		must(t, live.Until(t.Context(), limit, what, func(context.Context) error { return look() }))
	}
	waits("its Service and policy", func() error {
		var made corev1.Service
		var policy networkingv1.NetworkPolicy
		if err := shared.Get(t.Context(), name, &made); err != nil {
			return err
		}
		return shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "echo-serve"}, &policy)
	})
	const versions = 7
	for i := 1; i < versions; i++ {
		must(t, shared.EditService(t.Context(), name, func(spec *v1beta1.ClusterServiceSpec) error {
			spec.ServeConfig = echo(i)
			return nil
		}))
		waits(fmt.Sprintf("version %d", i), func() error { return observed(t, name) })
	}
	waits("the last versions alone", func() error {
		var kept appsv1.ControllerRevisionList
		err := shared.List(t.Context(), &kept, client.InNamespace(namespace))
		if err == nil && len(kept.Items) != 4 { // three, and the one that is asked for
			err = fmt.Errorf("%d are kept", len(kept.Items))
		}
		return err
	})
	former := c.undo(t, name)
	waits("version "+former+" again", func() error { return observed(t, name) })
	c.says(t, former, "service rollout history echo -o jsonpath={.items[*].revision}")
	must(t, shared.DropServices(t.Context(), namespace, limit))
	waits("nothing to be left", func() error {
		var clusters v1beta1.ComputeClusterList
		err := shared.List(t.Context(), &clusters, client.InNamespace(namespace))
		if err == nil && len(clusters.Items) > 0 {
			err = fmt.Errorf("%d clusters are", len(clusters.Items))
		}
		return err
	})
}

// undo returns a service to the version before the newest one that is kept, by the command line, and returns its number.
func (c *commandLine) undo(t *testing.T, name types.NamespacedName) string {
	t.Helper()
	undo, kept := "service rollout undo "+name.Name, "service rollout history "+name.Name+" -o jsonpath="
	number := strings.TrimSpace(c.run(t, "edit", outcome.Done, kept+"{.items[1].revision}"))
	config := c.run(t, "edit", outcome.Done, kept+"{.items[1].data.serveConfig}")
	c.run(t, "view", outcome.Refused, undo)
	c.says(t, "(server dry run)", undo+" --dry-run=server")
	c.says(t, "service/echo returns to the earlier version", undo)
	c.says(t, "service/echo has that version already", undo+" --to "+number)
	if said := c.run(t, "edit", outcome.Refused, undo+" --to 99"); !strings.Contains(said, number) {
		t.Errorf("it does not say which versions are kept: %s", said)
	}
	found, err := shared.FindService(t.Context(), name)
	must(t, err)
	var got, want any
	must(t, errors.Join(json.Unmarshal(found.Spec.ServeConfig.Raw, &got), json.Unmarshal([]byte(config), &want)))
	if !reflect.DeepEqual(got, want) || found.Spec.ClusterTemplate == nil || len(found.Spec.ClusterTemplate.Spec.WorkerGroups) != 1 {
		t.Errorf("version %s is %s, and the spec %+v", number, config, found.Spec)
	}
	return number
}

// echo asks for one application, in a version.
func echo(version int) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"name":"echo","route_prefix":"/","import_path":"echo:app","args":{"version":%d}}]}`, version)}
}

// observed tells by nil that a service's status is about its spec, and that it says what it
// waits for.
func observed(t *testing.T, name types.NamespacedName) error {
	t.Helper()
	found, err := shared.FindService(t.Context(), name)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1beta1.ConditionReady)
	if found.Status.ObservedGeneration != found.Generation || ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "" {
		return fmt.Errorf("it is %s", live.SaysOfService(found))
	}
	return nil
}
