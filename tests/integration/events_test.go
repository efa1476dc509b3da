package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestEvents_CountWhatHappensAgain: an event that is recorded again about an object that has not changed since becomes
// a series, which takes the right to patch. The operator seldom does that, so its recorder does it here, as its account.
func TestEvents_CountWhatHappensAgain(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.BuildConfigFromFlags("", shared.kubeconfig)
	must(t, err)
	asOperator, err := kubernetes.NewForConfig(config)
	must(t, err)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: asOperator.EventsV1()})
	defer broadcaster.Shutdown()
	must(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))

	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "about"}}
	recorder := broadcaster.NewRecorder(shared.Scheme(), live.ReleaseName)
	record := func() { recorder.Eventf(about, nil, corev1.EventTypeNormal, "Tried", "Try", "it was tried") }
	record()
	counted := func(want int32) {
		eventually(t, fmt.Sprintf("an event that counts %d", want), func(ctx context.Context) error {
			var list eventsv1.EventList
			if err := shared.List(ctx, &list, client.InNamespace(about.Namespace)); err != nil {
				return err
			}
			if len(list.Items) != 1 {
				return fmt.Errorf("there are %d events", len(list.Items))
			}
			if series := list.Items[0].Series; want > 1 && (series == nil || series.Count != want) {
				return fmt.Errorf("its series is %+v", series)
			}
			return nil
		})
	}
	counted(1)
	record()
	counted(2)
}
