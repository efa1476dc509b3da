package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// inPlace is a situation in which version 1 serves, an edit asks for other pods, and they must
// be replaced where they are.
func inPlace(t *testing.T, edit specEdit) *situation {
	t.Helper()
	s := serves(t)
	cluster := s.seen.Clusters[1]
	cluster.Annotations[v1beta1.AnnotationStartup] = startupOf(s.seen.Revisions[s.seen.Record.Active.Revision])
	cluster.Generation = 1
	cluster.upToDate(true, "every pod was built from the current spec")
	cluster.headBuilt()
	s.service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Type: v1beta1.ServiceUpgradeInPlace}
	edit(&s.service.Spec)
	return s
}

// headBuilt has the head be built from the cluster's spec.
func (c *Cluster) headBuilt() {
	c.Head.Annotations = map[string]string{v1beta1.AnnotationIntent: pod.Intent(c.ComputeCluster, "")}
}

// upToDate has the cluster say of the spec that it has whether all pods are built from it.
func (c *Cluster) upToDate(is bool, words string) {
	told := metav1.Condition{Type: v1beta1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason.RollingOut.Code, Message: words, ObservedGeneration: c.Generation}
	if is {
		told.Status, told.Reason = metav1.ConditionTrue, reason.PodsUpToDate.Code
	}
	c.Status.Conditions = []metav1.Condition{told}
}

// goesOn carries out what a plan has for cluster 1 and for the record.
func (s *situation) goesOn(t *testing.T, plan Plan) {
	t.Helper()
	if plan.Record == nil || len(plan.Change) != 1 {
		t.Fatalf("the plan is %s", plan.String())
	}
	s.seen.Record = *plan.Record
	cluster := s.seen.Clusters[1]
	cluster.Spec = plan.Change[0].Wanted.Spec
	cluster.Generation++
	if plan.Keep != nil {
		kept, err := parseRevision(plan.Keep)
		if err != nil {
			t.Fatal(err)
		}
		s.seen.Revisions[kept.ID] = kept
	}
}

func headImage(s *v1beta1.ClusterServiceSpec) { s.ClusterTemplate.Spec.Image = "ray:new" }
func workerImage(s *v1beta1.ClusterServiceSpec) {
	s.ClusterTemplate.Spec.WorkerGroups[0].Image = "ray:new"
}

func withHTTP(s *v1beta1.ClusterServiceSpec) {
	s.ServeConfig = runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"text","route_prefix":"/text","import_path":"app:v1"}],"http_options":{"keep_alive_timeout_s":7}}`)}
}

// TestPace: all pods at once where the head changes, workers one at a time otherwise, and as the
// user says where they do.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		edit specEdit
		want v1beta1.ClusterUpgradeType
	}{
		"head":    {headImage, v1beta1.ClusterUpgradeRecreate},
		"workers": {workerImage, v1beta1.ClusterUpgradeRollingWorkers},
		"startup": {withHTTP, v1beta1.ClusterUpgradeRecreate},
		"as the user says": {func(s *v1beta1.ClusterServiceSpec) {
			headImage(s)
			s.ClusterTemplate.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeNone}
		}, v1beta1.ClusterUpgradeNone},
	} {
		t.Run(name, func(t *testing.T) {
			s := inPlace(t, c.edit)
			plan := s.decide()
			if plan.Make != nil || len(plan.Change) != 1 || plan.Change[0].Wanted.Spec.UpgradeStrategy == nil {
				t.Fatalf("the plan is %s", plan.String())
			}
			if have := plan.Change[0].Wanted.Spec.UpgradeStrategy.Type; have != c.want {
				t.Errorf("the cluster replaces pods by %s, want %s", have, c.want)
			}
			if active := plan.Record.Active; active.Renewing != string(s.seen.Clusters[1].Head.UID) || active.Good == active.Revision {
				t.Errorf("the record is %s", plan.Record)
			}
		})
	}
}

// TestPaceStays: once begun it stays so until all is well, and goes then.
func TestPaceStays(t *testing.T) {
	s := inPlace(t, workerImage)
	s.goesOn(t, s.decide())
	cluster := s.seen.Clusters[1]
	cluster.upToDate(false, "1 of 2 workers are up to date")
	plan := s.decide()
	want := reason.UpgradeInPlace.Of(cluster.Name, "2", "1 of 2 workers are up to date")
	if diff := cmp.Diff(&want, plan.Upgrading); diff != "" || len(plan.Change) != 0 {
		t.Errorf("while it goes on: %s (- wanted, + said):\n%s", plan.String(), diff)
	}
	if !plan.Serving || plan.Wants[0].Config.Digest != s.seen.Record.Active.Taken {
		t.Errorf("it serves: %v; what is asked of the head has changed to %s", plan.Serving, plan.Wants[0].Config.Digest)
	}
	cluster.upToDate(true, "")
	if plan = s.decide(); plan.Record == nil || plan.Record.Active.Renewing != renewed || plan.Wants[0].Config.Digest == s.seen.Record.Active.Taken {
		t.Fatalf("once all are replaced: %s", plan.String())
	}
	s.seen.Record = *plan.Record
	s.takes(&s.seen.Record.Active)
	plan = s.decide()
	if len(plan.Change) != 1 || plan.Change[0].Wanted.Spec.UpgradeStrategy != nil || plan.Record.Active.Healthy != now {
		t.Errorf("once all is well: %s", plan.String())
	}
}

// TestConfigurationWaits: what is to come is asked of the head that has its pods, and of no other.
func TestConfigurationWaits(t *testing.T) {
	s := inPlace(t, func(spec *v1beta1.ClusterServiceSpec) { headImage(spec); withHTTP(spec) })
	former := s.seen.Record.Active.Taken
	plan := s.decide()
	if have := plan.Wants[0].Config.Digest; have != former {
		t.Errorf("the head that is to go is asked for %s, want %s", have, former)
	}
	s.goesOn(t, plan)
	cluster := s.seen.Clusters[1]
	cluster.upToDate(true, "") // of a head that is not seen to be gone
	if plan = s.decide(); plan.Wants[0].Config.Digest != former {
		t.Errorf("the head that is to go is asked for %s, want %s", plan.Wants[0].Config.Digest, former)
	}
	cluster.Head.UID = types.UID("next")
	cluster.headBuilt()
	if plan = s.decide(); plan.Wants[0].Config.Digest == former || plan.Record.Active.Renewing != renewed {
		t.Errorf("the next head is asked for %s: %s", plan.Wants[0].Config.Digest, plan.String())
	}
	if have := cluster.Spec.Head.Template.Annotations[v1beta1.AnnotationRestart]; have == "" || have == cluster.Annotations[v1beta1.AnnotationStartup] {
		t.Errorf("the head's pod is marked with %q", have)
	}
}

// TestNotInPlace: what the cluster that runs cannot become is not begun.
func TestNotInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		before, edit specEdit
		want         string
	}{
		"hosts": {func(*v1beta1.ClusterServiceSpec) {}, func(s *v1beta1.ClusterServiceSpec) {
			s.ClusterTemplate.Spec.WorkerGroups[0].HostsPerReplica = 2
		}, "hostsPerReplica is immutable"},
		"startup with a store": {func(s *v1beta1.ClusterServiceSpec) {
			s.ClusterTemplate.Spec.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
		}, withHTTP, "control store"},
	} {
		t.Run(name, func(t *testing.T) {
			s := inPlace(t, func(*v1beta1.ClusterServiceSpec) {})
			c.before(&s.service.Spec)
			s.seen.Clusters[1].Spec = *s.service.Spec.ClusterTemplate.Spec.DeepCopy()
			s.seen.Clusters[1].headBuilt()
			c.edit(&s.service.Spec)
			revision := s.seen.Record.Active.Revision
			plan := s.decide()
			if plan.Upgrading == nil || plan.Upgrading.Code != reason.UpgradeNotInPlace.Code || !strings.Contains(plan.Upgrading.Text, c.want) {
				t.Errorf("it says %+v", plan.Upgrading)
			}
			if len(plan.Change) > 0 || plan.Record != nil && plan.Record.Active.Revision != revision || !plan.Serving {
				t.Errorf("what serves is touched: %s", plan.String())
			}
		})
	}
}

// TestBackInPlace: what fails goes back to the pods that the good version was built from, in the
// sizes that the spec says now.
func TestBackInPlace(t *testing.T) {
	s := inPlace(t, workerImage)
	s.goesOn(t, s.decide())
	s.service.Spec.ClusterTemplate.Spec.WorkerGroups[0].Replicas = number(5)
	failed := s.seen.Clusters[1].Answer.Serving.Applications["text"]
	failed.State = "DEPLOY_FAILED"
	s.seen.Clusters[1].Answer.Serving.Applications["text"] = failed
	plan := s.decide()
	s.goesOn(t, plan)
	record := plan.Record
	if record.Failed == "" || record.Active.Revision != record.Active.Good || record.Active.Renewing == "" || record.Active.Pods != s.seen.Revisions[record.Active.Good].Pods {
		t.Errorf("the record is %s", record)
	}
	group := s.seen.Clusters[1].Spec.WorkerGroups[0]
	if group.Image != "" || *group.Replicas != 5 {
		t.Errorf("the group becomes %+v", group)
	}
	if plan.Phase != v1beta1.PhaseRollingBack || plan.Upgrading == nil {
		t.Errorf("it is %s: %+v", plan.Phase, plan.Upgrading)
	}
	delete(s.seen.Clusters, 1)
	if plan = s.decide(); plan.Make == nil || plan.Make.Spec.WorkerGroups[0].Image != "" {
		t.Errorf("a cluster that is gone is not made as the good version has it: %s", plan.String())
	}
}

// TestNotTakenBackUnasked: after a restart, proxies that have yet to be asked are not sick.
func TestNotTakenBackUnasked(t *testing.T) {
	s := inPlace(t, workerImage)
	s.goesOn(t, s.decide())
	s.seen.Record.Active.Renewing, s.seen.Record.Active.Healthy = "", now-1
	s.takes(&s.seen.Record.Active)
	clear(s.seen.Clusters[1].Answer.Probes)
	if plan := s.decide(); plan.Record != nil && plan.Record.Last != nil {
		t.Errorf("it is taken back: %s", plan.String())
	}
	for _, pod := range s.seen.Clusters[1].Pods {
		s.seen.Clusters[1].answers(pod, false)
	}
	if plan := s.decide(); plan.Record == nil || plan.Record.Last == nil || plan.Record.Last.Result != v1beta1.UpgradeRolledBack {
		t.Errorf("one whose proxies fail is not taken back: %s", plan.String())
	}
}

// TestRestoredInPlace: what was on its way where the pods are goes on from what the status tells.
func TestRestoredInPlace(t *testing.T) {
	s := inPlace(t, workerImage)
	s.goesOn(t, s.decide())
	s.seen.Clusters[1].upToDate(false, "0 of 2 workers are up to date")
	s.service.Status = Status(s.service, s.seen, s.decide(), nil, at())
	s.service.Annotations = nil
	have, err := recall(s.service, &s.seen, at())
	if err != nil {
		t.Fatal(err)
	}
	want := s.seen.Record.Active
	want.At, want.Taken, want.Took, want.Head = have.Active.At, "", "", ""
	if diff := cmp.Diff(want, have.Active); diff != "" {
		t.Errorf("(- before, + restored):\n%s", diff)
	}
}

// TestHeadHelpsOut: while workers are replaced one after another the head takes requests too,
// unless the user says that it never does.
func TestHeadHelpsOut(t *testing.T) {
	for _, given := range []*v1beta1.ServeService{nil, {HeadEndpoints: new(false)}} {
		s := inPlace(t, workerImage)
		s.service.Spec.Service = given
		s.goesOn(t, s.decide())
		s.seen.Clusters[1].upToDate(false, "0 of 2 workers are up to date")
		if open := len(s.decide().Open); (open == 1) != (given == nil) {
			t.Errorf("with %+v %d more pods get requests", given, open)
		}
		for _, worker := range s.seen.Clusters[1].Pods[1:] {
			worker.Annotations = map[string]string{v1beta1.AnnotationDrain: "{}"}
		}
		if plan := s.decide(); given != nil && len(plan.Close) > 0 {
			t.Errorf("the last ones that answer are closed: %s", plan.String())
		}
	}
}
