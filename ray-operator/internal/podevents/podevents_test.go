package podevents

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server gives one event for each read.
type server struct {
	client.Reader
	reads int
	err   error
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.reads++
	if events, is := list.(*corev1.EventList); is {
		events.Items = []corev1.Event{{Message: fmt.Sprint(s.reads)}}
	}
	return s.err
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(begin)}}
}

func TestOf_ReadsLessOftenTheOlderAPodIs(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  time.Duration
		reads int
	}{
		{"each 5 s at first, and then less often", 0, 8},
		{"each 40 s after two minutes", 2 * time.Minute, 2},
		{"each minute in the end", time.Hour, 1},
	} {
		var m Memory
		s := &server{}
		for second := range 60 {
			at := begin.Add(c.from + time.Duration(second)*time.Second)
			if events, there, err := m.Of(t.Context(), s, pod("a"), at); err != nil || !there || len(events) != 1 {
				t.Fatalf("%s: %v, %v, %v", c.name, events, there, err)
			}
		}
		if s.reads != c.reads {
			t.Errorf("%s: %d reads in a minute, want %d", c.name, s.reads, c.reads)
		}
	}
}

func TestOf_KeepsToItsBudget(t *testing.T) {
	var m Memory
	s := &server{}
	known := 0
	for second := range 5 { // before any answer is old
		for i := range 100 {
			_, there, err := m.Of(t.Context(), s, pod(fmt.Sprint(i)), begin.Add(time.Duration(second)*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if there && second == 4 {
				known++
			}
		}
	}
	if want := atOnce + 4*perSecond; s.reads != want || known != want {
		t.Errorf("%d reads, and %d pods are known; want %d", s.reads, known, want)
	}
}

func TestOf_GivesTheFormerAnswerBeyondItsBudget(t *testing.T) {
	var m Memory
	s := &server{}
	if _, _, err := m.Of(t.Context(), s, pod("a"), begin); err != nil {
		t.Fatal(err)
	}
	later := begin.Add(time.Minute)
	for i := range atOnce {
		if _, _, err := m.Of(t.Context(), s, pod(fmt.Sprint(i)), later); err != nil {
			t.Fatal(err)
		}
	}
	events, there, err := m.Of(t.Context(), s, pod("a"), later)
	if err != nil || !there || events[0].Message != "1" {
		t.Errorf("%v, %v, %v", events, there, err)
	}
	if _, there, _ := m.Of(t.Context(), s, pod("new"), later); there {
		t.Error("there is an answer about a pod that was not asked for")
	}
}

func TestOf_KeepsNoFailure(t *testing.T) {
	var m Memory
	s := &server{err: errors.New("away")}
	if _, _, err := m.Of(t.Context(), s, pod("a"), begin); err == nil {
		t.Error("the failure is not told")
	}
	s.err = nil
	if _, there, err := m.Of(t.Context(), s, pod("a"), begin); err != nil || !there || s.reads != 2 {
		t.Errorf("%v, %v, %d reads", there, err, s.reads)
	}
}

func TestOf_ForgetsPodsThatNobodyAsksFor(t *testing.T) {
	var m Memory
	s := &server{}
	for i := range 50 {
		if _, _, err := m.Of(t.Context(), s, pod(fmt.Sprint(i)), begin.Add(time.Duration(i)*10*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.known) > 2 {
		t.Errorf("%d pods are known", len(m.known))
	}
}
