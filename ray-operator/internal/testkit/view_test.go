package testkit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func podEvent(kind watch.EventType, name, version string, own bool) Event {
	return Event{Type: kind, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}, Own: own}
}

func serviceEvent(version string) Event {
	return Event{Type: watch.Added, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: version}}}
}

// versions are those of the events, in order.
func versions(events []Event) []string {
	var all []string
	for _, event := range events {
		all = append(all, event.Object.GetResourceVersion())
	}
	return all
}

func TestLateViews(t *testing.T) {
	story := []Event{
		podEvent(watch.Added, "a", "1", false), serviceEvent("2"), podEvent(watch.Modified, "a", "3", true), podEvent(watch.Modified, "a", "4", false),
		podEvent(watch.Added, "b", "5", false),
	}
	for name, test := range map[string]struct {
		late late
		want []string
	}{
		"not late":                   {late{}, []string{"1", "2", "3", "4", "5"}},
		"two of all":                 {late{by: 2}, []string{"1", "2", "3"}},
		"two of pods":                {late{kind: "Pod", by: 2}, []string{"1", "2", "3"}},
		"all of pods":                {late{kind: "Pod", by: 9}, []string{"2"}},
		"all of pods but its own":    {late{kind: "Pod", by: 9, waits: true}, []string{"1", "2", "3"}},
		"all but what is waited for": {late{by: 9, waits: true}, []string{"1", "3"}},
		"services":                   {late{kind: "Service", by: 1}, []string{"1", "3", "4", "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(nil)
			for _, event := range story {
				v.push(event)
			}
			if have := versions(v.deliver(test.late)); !slices.Equal(have, test.want) {
				t.Errorf("delivered %v, want %v", have, test.want)
			}
			if len(v.queue) != len(story)-len(test.want) {
				t.Errorf("%d events wait, want the other %d", len(v.queue), len(story)-len(test.want))
			}
		})
	}
}

// TestUnseenEvents: of two states of an object only the second is seen where the first is
// of the class, unless the operator wrote it; and the last one waits.
func TestUnseenEvents(t *testing.T) {
	v := newView(nil)
	for _, event := range []Event{
		podEvent(watch.Added, "a", "1", false), podEvent(watch.Modified, "a", "2", false), podEvent(watch.Modified, "b", "3", true),
		podEvent(watch.Modified, "a", "4", false), podEvent(watch.Deleted, "a", "5", false), podEvent(watch.Modified, "c", "6", false),
	} {
		v.push(event)
	}
	if have, want := versions(v.deliverBut(class{"Pod", watch.Modified})), []string{"1", "3", "5"}; !slices.Equal(have, want) {
		t.Errorf("delivered %v, want %v", have, want)
	}
	if have, want := versions(v.queue), []string{"6"}; !slices.Equal(have, want) {
		t.Errorf("%v wait, want %v", have, want)
	}
}
