package service

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestFormerReplicasAnswer: a configuration that cannot be deployed takes nothing from those who
// ask, as long as the former replicas answer; that is told as it is.
func TestFormerReplicasAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   headclient.ApplicationState
		spoil   func(*situation, *Cluster)
		serving bool
	}{
		{"it cannot be built", headclient.ApplicationDeployFailed, func(*situation, *Cluster) {}, true},
		{"its replicas do not start", headclient.ApplicationUnhealthy, func(*situation, *Cluster) {}, true},
		{"no proxy answers", headclient.ApplicationDeployFailed, func(_ *situation, cluster *Cluster) {
			for _, pod := range cluster.Pods {
				cluster.answers(pod, false)
			}
		}, false},
		{"a deployment has no replica", headclient.ApplicationUnhealthy, func(_ *situation, cluster *Cluster) {
			one := cluster.Answer.Serving.Applications["text"]
			one.Deployments = []headclient.Deployment{{Name: "D", Wanted: 2}}
			cluster.Answer.Serving.Applications["text"] = one
		}, false},
		{"nobody takes it back, and it is the good one that is broken", headclient.ApplicationUnhealthy, func(s *situation, _ *Cluster) {
			s.service.Spec.ServeConfig = serveConfig("app:v1")
			s.seen.Record.Active.Revision = s.seen.Record.Active.Good
			s.takes(&s.seen.Record.Active)
		}, false},
	} {
		s := serves(t)
		s.service.Spec.ServeConfig = serveConfig("app:bad")
		s.service.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		active := &s.seen.Record.Active
		active.Revision, active.Healthy = s.keep(t).ID, 0
		cluster := s.seen.Clusters[1]
		one := cluster.Answer.Serving.Applications["text"]
		one.State = c.state
		if c.state == headclient.ApplicationDeployFailed {
			one.Deployments = nil // of one that cannot be built Serve names none
		}
		cluster.Answer.Serving.Applications["text"] = one
		s.takes(active)
		c.spoil(s, cluster)
		if plan := s.decide(); plan.Serving != c.serving {
			t.Errorf("%s: serving is %v; %s: %s", c.name, plan.Serving, plan.Phase, plan.Finding.Text)
		}
	}
}

// TestWhyAHeadIsSilent: one that does not run is the cluster's affair, which knows why; only of one
// that should answer that it does not is the cause.
func TestWhyAHeadIsSilent(t *testing.T) {
	for _, c := range []struct {
		name        string
		ready       corev1.ConditionStatus
		told, cause string
	}{
		{"its image cannot be pulled", corev1.ConditionFalse, "ImagePullFailed", "ImagePullFailed"},
		{"it starts, and nothing is wrong yet", corev1.ConditionFalse, "HeadStarting", "ServeSilent"},
		{"it runs, and a worker's image cannot be pulled", corev1.ConditionTrue, "ImagePullFailed", "ServeSilent"},
	} {
		s := upgrades(t, nil)
		cluster := s.seen.Clusters[2]
		cluster.Answer = services.Answer{Failure: headclient.Unavailable, Err: errors.New("connection refused"), FailingSince: at().Add(-silentAfter)}
		cluster.Head.Status.Conditions[0].Status = c.ready
		cluster.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: c.told, Message: "told", ObservedGeneration: 1}}
		health := judgeVersion(s.read(), s.proxies(), cluster, expected{revision: s.seen.Revisions[s.seen.Record.Candidate.Revision], requires: wished})
		if health.Finding.Code != c.cause || !health.Silent {
			t.Errorf("%s: %s: %s", c.name, health.Finding.Code, health.Finding.Text)
		}
	}
}

func TestTheFirstDeploymentThatIsNotWellIsNamed(t *testing.T) {
	well := headclient.Deployment{Name: "A", State: "HEALTHY", Message: "scaled up"}
	dead := headclient.Deployment{Name: "B", State: "DEPLOY_FAILED", Message: "no module named app"}
	for _, c := range []struct {
		deployments []headclient.Deployment
		want        string
	}{
		{nil, "Failed to update"},
		{[]headclient.Deployment{well}, "Failed to update"},
		{[]headclient.Deployment{well, {Name: "C", State: "UPDATING"}}, "Failed to update"},
		{[]headclient.Deployment{well, dead, {Name: "C", State: "UNHEALTHY", Message: "later"}}, "Failed to update deployment B: no module named app"},
	} {
		if got := complaintOf(headclient.Application{Message: "Failed to update", Deployments: c.deployments}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestDeploying_SaysHowFar: Serve itself says nothing while code is loaded and replicas start.
func TestDeploying_SaysHowFar(t *testing.T) {
	echo := headclient.Application{Name: "echo", State: "DEPLOYING"}
	starts := echo
	starts.Deployments = []headclient.Deployment{{Name: "Echo", Running: 1, Wanted: 2}}
	for name, c := range map[string]struct {
		application   headclient.Application
		message, want string
	}{
		"in Serve's words":           {starts, "no CPU", "application echo is DEPLOYING: no CPU"},
		"by its replicas":            {starts, "", "application echo is DEPLOYING: 1 of 2 replicas of deployment Echo run"},
		"before it has a deployment": {echo, "", "application echo is DEPLOYING: its code and runtime environment are being loaded"},
	} {
		if have := explainDeploying(c.application, c.message); have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}

// TestFailedDeployment_SaysWhenItIsRetried, where it is.
func TestFailedDeployment_SaysWhenItIsRetried(t *testing.T) {
	for at, want := range map[time.Time]bool{{}: false, at().Add(time.Minute): true} {
		s := serves(t)
		s.seen.Clusters[1].Answer.Serving.Applications["text"] = headclient.Application{Name: "text", State: headclient.ApplicationDeployFailed, Message: "no index"}
		s.seen.Clusters[1].Answer.RetryAt = at
		plan := s.decide()
		if have := strings.Contains(plan.Finding.Text, "no index; it is deployed again at "+reconcile.Stamp(at)); plan.Finding.Code != "ApplicationFailed" || have != want {
			t.Errorf("retried at %s: %s: %s", at, plan.Finding.Code, plan.Finding.Text)
		}
	}
}

// TestOneProxyOfTwoFails: the service serves by way of the other, and says which one fails.
func TestOneProxyOfTwoFails(t *testing.T) {
	for failing, serving := range []bool{true, true, false} {
		s := serves(t)
		s.service.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		for _, pod := range s.seen.Clusters[1].Pods[1 : 1+failing] { // the first is the head
			s.seen.Clusters[1].answers(pod, false)
		}
		plan := s.decide()
		if plan.Serving != serving || (failing > 0) != (plan.Finding.Code == "ProxyFailing") {
			t.Errorf("%d fail: serving is %v; %s: %s", failing, plan.Serving, plan.Phase, plan.Finding.Text)
		}
	}
}

// TestDrainedProxy_IsNoSickness: the last replica of a Ray node has moved, and the head does not name its new place yet.
func TestDrainedProxy_IsNoSickness(t *testing.T) {
	for why, back := range map[string]bool{"status 503: This node is being drained.": false, "status 503": true} {
		s := serves(t)
		s.service.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		for _, pod := range s.seen.Clusters[1].Pods[1:] { // the first is the head
			s.seen.Clusters[1].answers(pod, false)
		}
		for probe, reply := range s.seen.Clusters[1].Answer.Probes {
			reply.Why = why
			s.seen.Clusters[1].Answer.Probes[probe] = reply
		}
		plan := s.decide()
		if plan.Serving == back || (plan.Finding.Code == "ProxyFailing") != back {
			t.Errorf("%s: serving is %v; %s: %s", why, plan.Serving, plan.Finding.Code, plan.Finding.Text)
		}
	}
}

// TestVersionWithoutAControllerIsNotTakenBack: Serve's controller may end and come back, which Ray tells as a Serve that
// was never started. While the proxies answer, a version that was well goes on.
func TestVersionWithoutAControllerIsNotTakenBack(t *testing.T) {
	for _, c := range []struct {
		name            string
		answers, proven bool
		back            bool
	}{
		{"its proxies answer", true, true, false},
		{"its proxies answer, and it was not well yet", true, false, false},
		{"its proxies do not answer either", false, true, true},
	} {
		s := upgrades(t, nil)
		s.seen.Record.Shift.Proven, s.seen.Record.Shift.Traffic = c.proven, 20
		cluster := s.seen.Clusters[2]
		cluster.Answer.Serving.Running, cluster.Answer.Serving.Applications = false, nil
		cluster.Answer.Serving.Targets = nil
		for _, pod := range cluster.Pods {
			if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker {
				pod.Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
			}
			cluster.answers(pod, c.answers)
		}
		if plan := s.decide(); (plan.Record.Failed != "") != c.back || plan.Record.Shift.Back != c.back {
			t.Errorf("%s: taken back is %v (%s)", c.name, plan.Record.Shift.Back, plan.Record.Failed)
		}
	}
}

// TestAssumed_KeepsRequestsOfASilentHead: no data is not zero while the proxies answer.
func TestAssumed_KeepsRequestsOfASilentHead(t *testing.T) {
	for name, hush := range map[string]func(*Cluster){
		"not heard of yet": func(c *Cluster) { c.Heard, c.Answer.At = false, time.Time{} },
		"silent": func(c *Cluster) {
			c.Answer.Failure, c.Answer.Err, c.Answer.FailingSince = headclient.Unavailable, errors.New("connection refused"), at().Add(-time.Hour)
		},
	} {
		s := serves(t)
		hush(s.seen.Clusters[1])
		plan := s.decide()
		if len(plan.Close) > 0 || plan.Active == nil || plan.Active.ReadyEndpoints != 2 {
			t.Errorf("%s: %s; active %+v", name, &plan, plan.Active)
		}
		active := assess(followed{view: s.read()}).active
		if !active.Assumed || active.Ready != 100 {
			t.Errorf("%s: assumed %v, ready %d %%", name, active.Assumed, active.Ready)
		}
	}
}

// TestCandidate_WaitsForItsOwnCluster: what it waits for names that, also before it is there.
func TestCandidate_WaitsForItsOwnCluster(t *testing.T) {
	s := upgrades(t, nil)
	delete(s.seen.Clusters, 2)
	want := reason.ServeClusterStarting.Of(naming.ServiceCluster("text", "text-uid", 2), "it is being made")
	if have := assess(followed{view: s.read()}).candidate.Finding; have != want {
		t.Errorf("it waits for %q, want %q", have.Text, want.Text)
	}
}
