package diagnose_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

// TestNotMade_TellsWhatTheAPIServerSaid, by the newest event, whatever their order.
func TestNotMade_TellsWhatTheAPIServerSaid(t *testing.T) {
	event := func(second int, why, message string) corev1.Event {
		return corev1.Event{Reason: why, Message: message, LastTimestamp: metav1.NewTime(born.Add(time.Duration(second) * time.Second))}
	}
	const refused = `create Pod store-redis-0 in StatefulSet store-redis failed error: pods "store-redis-0" is forbidden: `
	quota := event(1, "FailedCreate", refused+"failed quota: team: must specify limits.cpu for: certificates,redis")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "store-redis-0"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "certificates"}}, Containers: []corev1.Container{{Name: "redis"}},
	}}
	for name, c := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"a quota":              {[]corev1.Event{quota}, "QuotaExceeded: pod store-redis-0: "},
		"its words":            {[]corev1.Event{quota}, "must specify limits.cpu for: certificates,redis"},
		"the field that helps": {[]corev1.Event{quota}, "controlStore.managedRedis.size"},
		"a job's words":        {[]corev1.Event{event(1, "FailedCreate", `Error creating: pods "a" is forbidden: failed quota: q: must specify pods for: a`)}, "QuotaExceeded"},
		"another refusal":      {[]corev1.Event{event(1, "FailedCreate", "no")}, "CreateRefused: pod store-redis-0: "},
		"the newest":           {[]corev1.Event{event(9, "FailedCreate", refused+`violates PodSecurity "restricted:latest": x`), quota}, "PodSecurityDenied"},
		"it was made since":    {[]corev1.Event{event(2, "SuccessfulCreate", "create Pod"), quota}, ""},
		"it failed once again": {[]corev1.Event{event(0, "SuccessfulCreate", "create Pod"), quota}, "QuotaExceeded"},
		"other events":         {[]corev1.Event{event(1, "RecreatingFailedPod", "x")}, ""},
		"none":                 {nil, ""},
	} {
		finding, found := diagnose.NotMade(pod, c.events)
		if have := finding.Code + ": " + finding.Text; found != (c.want != "") || !strings.Contains(have, c.want) {
			t.Errorf("%s: %v, %s, want %s", name, found, have, c.want)
		}
	}
}
