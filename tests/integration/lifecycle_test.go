package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestTheSampleFromApplyToDelete(t *testing.T) {
	namespace := newNamespace(t)
	name := types.NamespacedName{Namespace: namespace, Name: "demo"}
	must(t, shared.Apply(t.Context(), namespace, sample(t)))

	untouched, err := shared.Find(t.Context(), name)
	must(t, err)
	waiting := meta.FindStatusCondition(untouched.Status.Conditions, v1beta1.ConditionReady)
	if waiting == nil || waiting.Status != metav1.ConditionUnknown || waiting.Reason != "Pending" {
		t.Errorf("before the operator runs, Ready is %+v, want Unknown with the reason Pending", waiting)
	}

	startOperator(t)
	cluster := ready(t, name)
	if heads, workers := podsOf(t, name, v1beta1.RoleHead), podsOf(t, name, v1beta1.RoleWorker); len(heads) != 1 || len(workers) != 2 {
		t.Errorf("there are %d heads and %d workers, want 1 and 2", len(heads), len(workers))
	}
	var secret corev1.Secret
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: cluster.Status.TokenSecretName}, &secret))
	if len(secret.Data[v1beta1.TokenKey]) < 32 {
		t.Errorf("the token has %d characters, want at least 32", len(secret.Data[v1beta1.TokenKey]))
	}
	if got, want := columns(t, name), "demo 2/2 Ready"; !strings.HasPrefix(got, want) {
		t.Errorf("kubectl get shows %q, want it to begin with %q and the age after it", got, want)
	}

	begin := time.Now()
	must(t, shared.Delete(t.Context(), cluster))
	must(t, shared.UntilGone(t.Context(), name, limit))
	t.Logf("deleted and nothing left after %v", time.Since(begin).Round(10*time.Millisecond))
}

// columns is the row that kubectl get prints of a cluster: the columns of priority 0.
func columns(t *testing.T, name types.NamespacedName) string {
	t.Helper()
	text, err := shared.Kubernetes.CoreV1().RESTClient().Get().
		AbsPath("/apis/heliostat.dev/v1beta1/namespaces", name.Namespace, "computeclusters", name.Name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)
	var table metav1.Table
	must(t, json.Unmarshal(text, &table))
	var cells []string
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			cells = append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
		}
	}
	return strings.Join(cells, " ")
}

// replaced waits until a pod is gone and the cluster has as many as it should again.
func replaced(t *testing.T, name types.NamespacedName, lost corev1.Pod) {
	t.Helper()
	must(t, live.Until(t.Context(), limit, "a successor of "+lost.Name, func(ctx context.Context) error {
		pods, err := shared.PodsOf(ctx, name, "")
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.UID == lost.UID {
				return fmt.Errorf("%s is still there", lost.Name)
			}
		}
		if len(pods) != 3 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	}))
}

// podsOfReady waits for a cluster and gives its workers.
func podsOfReady(t *testing.T, name types.NamespacedName) []corev1.Pod {
	t.Helper()
	ready(t, name)
	return podsOf(t, name, v1beta1.RoleWorker)
}

type nameSet map[string]bool

func podNames(pods []corev1.Pod) nameSet {
	names := nameSet{}
	for i := range pods {
		names[pods[i].Name] = true
	}
	return names
}

func (s nameSet) any() string {
	for name := range s {
		return name
	}
	return ""
}
