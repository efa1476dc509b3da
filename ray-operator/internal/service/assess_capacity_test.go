package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// scaledConfig has Serve scale the deployment D of the application text.
func scaledConfig(path string, least, most int) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"name":"text","route_prefix":"/text","import_path":%q,`+
		`"deployments":[{"name":"D","autoscaling_config":{"min_replicas":%d,"max_replicas":%d}}]}]}`, path, least, most)}
}

func configOf(t *testing.T, given runtime.RawExtension) serveconfig.Config {
	t.Helper()
	config, err := serveconfig.Parse(given.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// says has Serve on a cluster say this of the deployment D.
func (s *situation) says(cluster int, state, trigger string, running, wanted int) {
	c := s.seen.Clusters[cluster]
	one := c.Answer.Serving.Applications["text"]
	one.State = headclient.ApplicationRunning
	if trigger == "CONFIG_UPDATE_STARTED" {
		one.State = headclient.ApplicationDeploying
	}
	one.Deployments = []headclient.Deployment{{Name: "D", State: state, Trigger: trigger, Running: running, Wanted: wanted}}
	c.Answer.Serving.Applications["text"] = one
}

// under is an upgrade whose candidate has a share of the requests, and had all that it was told to have.
func under(t *testing.T, traffic int, edit func(*v1beta1.ClusterServiceSpec)) *situation {
	t.Helper()
	s := upgrades(t, edit)
	s.seen.Record.Shift = upgrade.Shift{Traffic: traffic, Active: 100, Candidate: 100, Proven: true, At: at().Add(-5 * time.Second), Began: at().Add(-time.Minute)}
	s.takes(&s.seen.Record.Active)
	s.takes(s.seen.Record.Candidate)
	return s
}

// TestUpgrade_GrowthIsNoSickness: the requests that come make a candidate grow, which is not taken back for it.
func TestUpgrade_GrowthIsNoSickness(t *testing.T) {
	for _, c := range []struct{ traffic, running, wanted int }{{100, 9, 10}, {100, 4, 5}, {80, 2, 4}, {40, 1, 4}, {20, 0, 1}} {
		s := under(t, c.traffic, nil)
		s.says(2, "UPSCALING", "AUTOSCALING", c.running, c.wanted)
		plan := s.decide()
		if record := plan.Record; record != nil && (record.Failed != "" || record.Shift.Back || record.Shift.Traffic < c.traffic) {
			t.Errorf("with %d %% of the requests it grows from %d to %d replicas: %s", c.traffic, c.running, c.wanted, record)
		}
	}
}

// TestUpgrade_KeepsItsStepWhileTheActiveGrows: what the active version still wants is no reason to send more requests
// to the other one.
func TestUpgrade_KeepsItsStepWhileTheActiveGrows(t *testing.T) {
	s := under(t, 1, func(spec *v1beta1.ClusterServiceSpec) {
		spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{StepPercent: number(1), IntervalSeconds: number(3600)}}
	})
	s.says(1, "UPSCALING", "AUTOSCALING", 2, 6)
	if plan := s.decide(); plan.Record != nil && plan.Record.Shift.Traffic != 1 {
		t.Errorf("the active version grows from 2 to 6 replicas, and the candidate gets %d %%", plan.Record.Shift.Traffic)
	}
}

// TestRequirement_IsOfTheWhole: what a deployment has to run, of which version.
func TestRequirement_IsOfTheWhole(t *testing.T) {
	whole, config := Whole{"text/D": 8}, configOf(t, scaledConfig("app:v2", 1, 10))
	const grows, started = "AUTOSCALING", "CONFIG_UPDATE_STARTED"
	for name, c := range map[string]struct {
		requires        requirement
		state, trigger  string
		running, wanted int
		want            int
	}{
		"a fixed number":                       {wished, "HEALTHY", started, 1, 3, 3},
		"without an upgrade it may grow":       {wished, "UPSCALING", grows, 1, 3, 1},
		"and shrink":                           {wished, "DOWNSCALING", grows, 5, 3, 3},
		"told so, it has to":                   {wished, "UPSCALING", started, 1, 3, 3},
		"the candidate the whole":              {whole.ofCandidate(config, 100), "HEALTHY", grows, 8, 9, 8},
		"though it grows":                      {whole.ofCandidate(config, 100), "UPSCALING", grows, 3, 9, 8},
		"a share of it":                        {whole.ofCandidate(config, 25), "HEALTHY", started, 2, 2, 2},
		"never none":                           {whole.ofCandidate(config, 1), "HEALTHY", started, 2, 2, 1},
		"before it is told so too":             {whole.ofCandidate(config, 100), "HEALTHY", started, 1, 1, 8},
		"no more than its own most":            {whole.ofCandidate(configOf(t, scaledConfig("app:v2", 1, 5)), 100), "HEALTHY", started, 5, 5, 5},
		"of another deployment its wish":       {Whole{}.ofCandidate(config, 100), "HEALTHY", started, 5, 5, 5},
		"the active what it has":               {whole.ofActive, "UPSCALING", started, 3, 8, 3},
		"something":                            {whole.ofActive, "UPDATING", started, 0, 8, 8},
		"of another deployment it is its wish": {Whole{}.ofActive, "UPDATING", started, 3, 8, 8},
	} {
		deployment := headclient.Deployment{Name: "D", State: c.state, Trigger: c.trigger, Running: c.running, Wanted: c.wanted}
		if got := c.requires("text", deployment); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestCounted_IsTheMostThatRan of what the candidate has Serve scale, within the room of a record.
func TestCounted_IsTheMostThatRan(t *testing.T) {
	active := func(running int) headclient.Serving {
		return headclient.Serving{Applications: map[string]headclient.Application{"text": {Name: "text", Deployments: []headclient.Deployment{{Name: "D", Running: running}, {Name: "E", Running: 9}}}}}
	}
	scaled := configOf(t, scaledConfig("app:v2", 1, 10))
	for name, c := range map[string]struct {
		before  Whole
		config  serveconfig.Config
		running int
		want    Whole
	}{
		"what runs":           {nil, scaled, 4, Whole{"text/D": 4}},
		"more":                {Whole{"text/D": 4}, scaled, 6, Whole{"text/D": 6}},
		"not less":            {Whole{"text/D": 4}, scaled, 2, Whole{"text/D": 4}},
		"not what is gone":    {Whole{"text/old": 4}, scaled, 2, Whole{"text/D": 2}},
		"nothing of nothing":  {nil, scaled, 0, nil},
		"nothing of a number": {nil, configOf(t, serveConfig("app:v2")), 4, nil},
	} {
		if diff := cmp.Diff(c.want, c.before.countReplicas(c.config, active(c.running))); diff != "" {
			t.Errorf("%s: want -, have +\n%s", name, diff)
		}
	}
	quarter, told := active(1), 25.0
	quarter.Capacity = &told
	if got := Whole(nil).countReplicas(scaled, quarter)["text/D"]; got != 4 {
		t.Errorf("one is a quarter of %d, want 4", got)
	}
	var deployments []string
	many := headclient.Application{Name: "text"}
	for i := range 500 {
		name := fmt.Sprintf("Model%03d", i)
		deployments = append(deployments, fmt.Sprintf(`{"name":%q,"autoscaling_config":{"max_replicas":9}}`, name))
		many.Deployments = append(many.Deployments, headclient.Deployment{Name: name, Running: 9})
	}
	config := configOf(t, runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"text","import_path":"app:v1","deployments":[` + strings.Join(deployments, ",") + `]}]}`)})
	record := Record{Version: recordVersion, Whole: Whole(nil).countReplicas(config, headclient.Serving{Applications: map[string]headclient.Application{"text": many}})}
	if _, err := ParseRecord(record.String()); err != nil || len(record.Whole) == 0 {
		t.Errorf("of 500 deployments %d are noted: %v", len(record.Whole), err)
	}
}

// asks are the bounds that a head is asked for, by its cluster; 0 where nothing is asked of it.
func asks(t *testing.T, s *situation, plan Plan) map[int]serveconfig.Bounds {
	t.Helper()
	all := map[int]serveconfig.Bounds{}
	for number, cluster := range s.seen.Clusters {
		for _, want := range plan.Wants {
			if want.Cluster == cluster && want.Config != nil {
				all[number] = serveconfig.Application{Raw: want.Config.Applications["text"]}.Scaled()[0].Bounds
			}
		}
	}
	return all
}

// begins is an upgrade that begins, of an active version with seven replicas of at most ten.
func begins(t *testing.T, edit func(*v1beta1.ClusterServiceSpec)) *situation {
	t.Helper()
	s := serves(t)
	s.turns(t, func(spec *v1beta1.ClusterServiceSpec) { spec.ServeConfig = scaledConfig("app:v1", 1, 10) })
	s.upgrade(t, edit)
	s.says(1, "HEALTHY", "UPSCALE_COMPLETED", 7, 7)
	s.says(2, "HEALTHY", "CONFIG_UPDATE_COMPLETED", 1, 1)
	return s
}

// TestCandidate_IsWarmBeforeItsShare: it is asked for as many replicas as the active version runs, and gets no request
// before it has them.
func TestCandidate_IsWarmBeforeItsShare(t *testing.T) {
	s := begins(t, nil)
	plan := s.decide()
	if got, want := asks(t, s, plan)[2], (serveconfig.Bounds{Least: 7, Most: 10}); got != want {
		t.Errorf("the candidate is asked for %+v, want %+v", got, want)
	}
	s.seen.Record = *plan.Record
	s.takes(s.seen.Record.Candidate)
	for running, traffic := range map[int]int{1: 0, 6: 0, 7: 20} {
		state, trigger := "UPSCALING", "CONFIG_UPDATE_STARTED"
		if running == 7 {
			state, trigger = "HEALTHY", "UPSCALE_COMPLETED"
		}
		s.says(2, state, trigger, running, 7)
		got := 0
		if plan := s.decide(); plan.Record != nil {
			got = plan.Record.Shift.Traffic
		}
		if got != traffic {
			t.Errorf("with %d of 7 replicas it gets %d %%, want %d", running, got, traffic)
		}
	}
}

// TestCandidate_WaitsUntilTheActiveIsCounted: an operator that has just started does not know how many are needed.
func TestCandidate_WaitsUntilTheActiveIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*situation)
		asked bool
	}{
		"not heard of yet":                {func(s *situation) { unheardOf(s.seen.Clusters[1]) }, false},
		"silent for long":                 {func(s *situation) { silence(s.seen.Clusters[1]) }, true},
		"its head is gone":                {func(s *situation) { s.seen.Clusters[1].Head = nil }, true},
		"it never served":                 {func(s *situation) { unheardOf(s.seen.Clusters[1]); s.seen.Record.Active.Good = "" }, true},
		"it was counted before a restart": {func(s *situation) { unheardOf(s.seen.Clusters[1]); s.seen.Record.Whole = Whole{"text/D": 7} }, true},
	} {
		s := begins(t, nil)
		c.spoil(s)
		if _, asked := asks(t, s, s.decide())[2]; asked != c.asked {
			t.Errorf("%s: asked is %v", name, asked)
		}
	}
}

func silence(c *Cluster) {
	c.Answer.Failure, c.Answer.FailingSince, c.Answer.At = headclient.Unavailable, at().Add(-time.Hour), time.Time{}
}

// TestUpgrade_HoldsTheWholeOnBothSides while requests go over, so that there is one to go back to. With less room than
// two clusters take neither grows beyond its share.
func TestUpgrade_HoldsTheWholeOnBothSides(t *testing.T) {
	whole, free := serveconfig.Bounds{Least: 7, Most: 10}, serveconfig.Bounds{Least: 1, Most: 10}
	for name, c := range map[string]struct {
		shift             upgrade.Shift
		active, candidate serveconfig.Bounds
	}{
		"before the first step":    {upgrade.Shift{Active: 100, Candidate: 100}, free, whole},
		"after it":                 {upgrade.Shift{Traffic: 20, Active: 100, Candidate: 100}, whole, whole},
		"with all of the requests": {upgrade.Shift{Traffic: 100, Active: 100, Candidate: 100}, whole, whole},
		"with little room":         {upgrade.Shift{Traffic: 20, Active: 75, Candidate: 25}, serveconfig.Bounds{Least: 7, Most: 7}, serveconfig.Bounds{Least: 7, Most: 7}},
	} {
		s := begins(t, nil)
		s.seen.Record.Whole, s.seen.Record.Shift = Whole{"text/D": 7}, c.shift
		states := s.read().states()
		for version, want := range map[*versionState]serveconfig.Bounds{&states.active: c.active, states.candidate: c.candidate} {
			got := free
			if held, any := version.bounds["text"]["D"]; any {
				got = held
			}
			if got != want {
				t.Errorf("%s: cluster %d is asked for %+v, want %+v", name, version.Cluster, got, want)
			}
		}
	}
}

// TestUpgrade_EndsWhateverTheLoadIs: Serve scales both versions as it likes, within the bounds that it is asked for and
// not at once. No upgrade is taken back, no step is larger than it may be, and no candidate has requests before it has
// what the active version had.
func TestUpgrade_EndsWhateverTheLoadIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		least, most := rapid.IntRange(0, 3).Draw(rt, "least"), rapid.IntRange(3, 12).Draw(rt, "most")
		s := serves(t)
		s.turns(t, func(spec *v1beta1.ClusterServiceSpec) { spec.ServeConfig = scaledConfig("app:v1", least, most) })
		s.upgrade(t, func(spec *v1beta1.ClusterServiceSpec) {
			spec.ServeConfig = scaledConfig("app:v2", least, most)
			spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{StepPercent: number(int32(rapid.IntRange(5, 100).Draw(rt, "step"))), IntervalSeconds: number(1)}}
		})
		begun := rapid.IntRange(max(1, least), most).Draw(rt, "begun")
		versions := map[int]*loaded{1: {s: s, cluster: 1, running: begun, wanted: begun}, 2: {s: s, cluster: 2}}
		step := int(*s.service.Spec.UpgradeStrategy.Surge.StepPercent)
		for second := range 400 {
			for number, version := range versions {
				version.turn(rt, number, least, most)
			}
			plan := s.decideAt(at().Add(time.Duration(second) * time.Second))
			for number, bounds := range asks(t, s, plan) {
				versions[number].bounds = bounds
			}
			before := s.seen.Record.Shift.Traffic
			if plan.Record != nil {
				s.seen.Record = *plan.Record
			}
			record := &s.seen.Record
			if record.Candidate == nil && record.Active.Cluster == 2 {
				return
			}
			s.takes(&record.Active)
			s.takes(record.Candidate)
			after := record.Shift.Traffic
			if record.Failed != "" || record.Shift.Back || after < before || after > before+step {
				rt.Fatalf("at %d s from %d %%: %s; %+v", second, before, record, versions)
			}
			if whole := record.Whole["text/D"]; after > 0 && versions[2].running < min(whole, most) {
				rt.Fatalf("at %d s it has %d %% with %d replicas of %d", second, after, versions[2].running, whole)
			}
		}
		rt.Fatalf("after 400 s it has not ended: %s", &s.seen.Record)
	})
}

// loaded is one version that Serve scales.
type loaded struct {
	s                        *situation
	cluster, running, wanted int
	bounds                   serveconfig.Bounds
	told                     bool // by the configuration and not by the load
}

// turn lets a second pass: Serve starts or ends one replica, and now and then wants another number.
func (l *loaded) turn(t *rapid.T, number, least, most int) {
	if l.bounds.Most == 0 {
		l.bounds = serveconfig.Bounds{Least: least, Most: most}
	}
	switch within := min(max(l.wanted, l.bounds.Least), l.bounds.Most); {
	case within != l.wanted:
		l.wanted, l.told = within, true
	case l.running == l.wanted && rapid.IntRange(0, 3).Draw(t, fmt.Sprintf("version %d changes", number)) == 0:
		l.wanted, l.told = rapid.IntRange(l.bounds.Least, l.bounds.Most).Draw(t, "wanted"), false
	}
	state := "HEALTHY"
	switch {
	case l.running < l.wanted:
		l.running, state = l.running+1, "UPSCALING"
	case l.running > l.wanted:
		l.running, state = l.running-1, "DOWNSCALING"
	}
	trigger := "AUTOSCALING"
	if l.told && state != "HEALTHY" {
		trigger = "CONFIG_UPDATE_STARTED"
	}
	l.s.says(l.cluster, state, trigger, l.running, l.wanted)
}
