package diagnose

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// server gives one event for each read.
type server struct {
	reads int
	err   error
}

func (s *server) read() ([]corev1.Event, error) {
	s.reads++
	return []corev1.Event{{Message: fmt.Sprint(s.reads)}}, s.err
}

// made is a pod that was made at then.
func made(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(then)}}
}

func TestEventCache_ReadsLessOftenTheOlderAPodIs(t *testing.T) {
	for _, row := range []struct {
		name  string
		from  time.Duration
		reads int
	}{
		{"each 5 s at first, and then less often", 0, 8},
		{"each 40 s after two minutes", 2 * time.Minute, 2},
		{"each minute in the end", time.Hour, 1},
	} {
		var c EventCache
		s := &server{}
		for second := range 60 {
			at := then.Add(row.from + time.Duration(second)*time.Second)
			if events, there, err := c.Of(made("a"), at, s.read); err != nil || !there || len(events) != 1 {
				t.Fatalf("%s: %v, %v, %v", row.name, events, there, err)
			}
		}
		if s.reads != row.reads {
			t.Errorf("%s: %d reads in a minute, want %d", row.name, s.reads, row.reads)
		}
	}
}

func TestEventCache_KeepsToItsBudget(t *testing.T) {
	var c EventCache
	s := &server{}
	known := 0
	for second := range 5 { // before any answer is old
		for i := range 100 {
			_, there, err := c.Of(made(fmt.Sprint(i)), then.Add(time.Duration(second)*time.Second), s.read)
			if err != nil {
				t.Fatal(err)
			}
			if there && second == 4 {
				known++
			}
		}
	}
	if want := readsAtOnce + 4*readsPerSecond; s.reads != want || known != want {
		t.Errorf("%d reads, and %d pods are known; want %d", s.reads, known, want)
	}
}

func TestEventCache_GivesTheFormerAnswerBeyondItsBudget(t *testing.T) {
	var c EventCache
	s := &server{}
	if _, _, err := c.Of(made("a"), then, s.read); err != nil {
		t.Fatal(err)
	}
	later := then.Add(time.Minute)
	for i := range readsAtOnce {
		if _, _, err := c.Of(made(fmt.Sprint(i)), later, s.read); err != nil {
			t.Fatal(err)
		}
	}
	events, there, err := c.Of(made("a"), later, s.read)
	if err != nil || !there || events[0].Message != "1" {
		t.Errorf("%v, %v, %v", events, there, err)
	}
	if _, there, _ := c.Of(made("new"), later, s.read); there {
		t.Error("there is an answer about a pod that was not asked for")
	}
}

func TestEventCache_KeepsNoFailure(t *testing.T) {
	var c EventCache
	s := &server{err: errors.New("away")}
	if _, _, err := c.Of(made("a"), then, s.read); err == nil {
		t.Error("the failure is not told")
	}
	s.err = nil
	if _, there, err := c.Of(made("a"), then, s.read); err != nil || !there || s.reads != 2 {
		t.Errorf("%v, %v, %d reads", there, err, s.reads)
	}
}

func TestEventCache_ForgetsPodsThatNobodyAsksFor(t *testing.T) {
	var c EventCache
	s := &server{}
	for i := range 50 {
		if _, _, err := c.Of(made(fmt.Sprint(i)), then.Add(time.Duration(i)*10*time.Minute), s.read); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.known) > 2 {
		t.Errorf("%d pods are known", len(c.known))
	}
}
