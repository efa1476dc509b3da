package services

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

var theProbe = Probe{Pod: "p", Address: "a"}

func percent(p float64) *float64 { return &p }

// someAnswer has something everywhere.
func someAnswer() Answer {
	return Answer{
		At: time.Unix(100, 0), Outcome: Outcome{Taken: "d1", Refused: "no", RefusedDigest: "d2"},
		Serving: headclient.Serving{
			Running: true, Capacity: percent(50),
			Targets: []headclient.Target{{Protocol: "HTTP", Instance: "p", IP: "10.0.0.1", Port: 8000}, {Protocol: "HTTP", Instance: "q", IP: "10.0.0.2", Port: 8000}},
			Applications: map[string]headclient.Application{"a": {
				Name: "a", State: headclient.ApplicationRunning, Message: "fine", RoutePrefix: "/a", Declarative: true,
				Deployments: []headclient.Deployment{{Name: "d", State: "HEALTHY", Trigger: "t", Message: "m", Wanted: 2, Running: 2}},
			}},
		},
		Probes:    map[Probe]Reply{theProbe: {OK: true, Since: time.Unix(90, 0), Times: 2}},
		LastLines: map[string]string{"a": "boom"},
	}
}

// inApplication, inDeployment and inReply make changes of an answer of those of a part of it.
func inApplication(change func(*headclient.Application)) func(*Answer) {
	return func(a *Answer) { a.Serving.Applications["a"] = but(a.Serving.Applications["a"], change) }
}

func inDeployment(change func(*headclient.Deployment)) func(*Answer) {
	return inApplication(func(a *headclient.Application) { change(&a.Deployments[0]) })
}

func inReply(change func(*Reply)) func(*Answer) {
	return func(a *Answer) {
		reply := a.Probes[theProbe]
		change(&reply)
		a.Probes[theProbe] = reply
	}
}

// TestNews: which changes of an answer mean something new.
func TestNews(t *testing.T) {
	for name, change := range map[string]func(*Answer){
		"the first was heard":      func(a *Answer) { a.At = time.Time{} },
		"it fails":                 func(a *Answer) { a.Failure = headclient.Timeout },
		"taken":                    func(a *Answer) { a.Outcome = Outcome{Taken: "d3", Refused: "no", RefusedDigest: "d2"} },
		"refused":                  func(a *Answer) { a.Outcome = Outcome{Taken: "d1", Refused: "never", RefusedDigest: "d2"} },
		"another is refused":       func(a *Answer) { a.Outcome = Outcome{Taken: "d1", Refused: "no", RefusedDigest: "d3"} },
		"no controller":            func(a *Answer) { a.Serving.Running = false },
		"the capacity":             func(a *Answer) { a.Serving.Capacity = percent(60) },
		"no capacity":              func(a *Answer) { a.Serving.Capacity = nil },
		"a target goes":            func(a *Answer) { a.Serving.Targets = a.Serving.Targets[:1] },
		"a target comes":           func(a *Answer) { a.Serving.Targets = append(a.Serving.Targets, headclient.Target{Instance: "r"}) },
		"a target has moved":       func(a *Answer) { a.Serving.Targets[0].IP = "10.0.0.3" },
		"an application goes":      func(a *Answer) { delete(a.Serving.Applications, "a") },
		"an application comes":     func(a *Answer) { a.Serving.Applications["b"] = headclient.Application{} },
		"a state":                  inApplication(func(a *headclient.Application) { a.State = headclient.ApplicationUnhealthy }),
		"a message":                inApplication(func(a *headclient.Application) { a.Message = "ill" }),
		"a route":                  inApplication(func(a *headclient.Application) { a.RoutePrefix = "/b" }),
		"where it came from":       inApplication(func(a *headclient.Application) { a.Declarative = false }),
		"no deployment":            inApplication(func(a *headclient.Application) { a.Deployments = nil }),
		"a deployment's name":      inDeployment(func(d *headclient.Deployment) { d.Name = "e" }),
		"a deployment's state":     inDeployment(func(d *headclient.Deployment) { d.State = "UPDATING" }),
		"a deployment's trigger":   inDeployment(func(d *headclient.Deployment) { d.Trigger = "u" }),
		"a deployment's message":   inDeployment(func(d *headclient.Deployment) { d.Message = "n" }),
		"how many are wanted":      inDeployment(func(d *headclient.Deployment) { d.Wanted++ }),
		"how many run":             inDeployment(func(d *headclient.Deployment) { d.Running-- }),
		"a proxy fails":            inReply(func(r *Reply) { *r = Reply{Times: 1} }),
		"a third time":             inReply(func(r *Reply) { r.Times = 3 }),
		"the first again":          inReply(func(r *Reply) { r.Times = 1 }),
		"a proxy that is new":      func(a *Answer) { a.Probes[Probe{Pod: "q"}] = Reply{OK: true, Times: 1} },
		"a proxy that is new, bad": func(a *Answer) { a.Probes[Probe{Pod: "q"}] = Reply{Times: 1} },
		"a last line":              func(a *Answer) { a.LastLines["a"] = "bang" },
	} {
		answer := someAnswer()
		if change(&answer); !HasNews(someAnswer(), answer) {
			t.Errorf("%s is no news", name)
		}
	}
}

// TestNoNews: which do not.
func TestNoNews(t *testing.T) {
	for name, change := range map[string]func(*Answer){
		"nothing":          func(*Answer) {},
		"a time":           func(a *Answer) { a.At = time.Unix(200, 0) },
		"a fourth time":    inReply(func(r *Reply) { r.Times = 4 }),
		"since when":       inReply(func(r *Reply) { r.Since = time.Unix(95, 0) }),
		"a proxy that was": func(a *Answer) { clear(a.Probes) },
		"another order":    func(a *Answer) { t := a.Serving.Targets; t[0], t[1] = t[1], t[0] },
		"when deployed":    inApplication(func(a *headclient.Application) { a.DeployedAt = time.Unix(1, 0) }),
		"which replicas":   inDeployment(func(d *headclient.Deployment) { d.Replicas = []headclient.Replica{{ID: "r"}} }),
		"the same failure": func(a *Answer) { a.Err = fmt.Errorf("other words") },
	} {
		answer := someAnswer()
		if change(&answer); HasNews(someAnswer(), answer) {
			t.Errorf("%s is news", name)
		}
	}
}

// TestWakes: only for what is new.
func TestWakes(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		b.Want(cluster, wanted(nil))
		b.Pass(2 * time.Second)
		if n := b.Wakes(); n != 1 {
			t.Errorf("%d wakes for the first answer", n)
		}
		b.Pass(time.Minute)
		if n := b.Wakes(); n != 0 {
			t.Errorf("%d wakes without news", n)
		}
		head.add(application("a", string(ask("a"))))
		b.Pass(6 * time.Second)
		if n := b.Wakes(); n != 1 {
			t.Errorf("%d wakes for an application that came", n)
		}
		head.set(func(s *scripted) { s.Always[serving] = fault{Hung: true} })
		b.Pass(12 * time.Second)
		if n := b.Wakes(); n != 1 {
			t.Errorf("%d wakes for a failure", n)
		}
		b.Pass(time.Minute)
		if n := b.Wakes(); n != 0 {
			t.Errorf("%d wakes for more of the same", n)
		}
	})
}
