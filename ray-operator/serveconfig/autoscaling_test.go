package serveconfig_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// deployed is an application with these deployments, in JSON.
func deployed(t *testing.T, deployments string) serveconfig.Application {
	t.Helper()
	return parsed(t, `{"applications":[{"name":"text","import_path":"app:v1","deployments":`+deployments+`}]}`).Applications[0]
}

func TestScaled_ReadsWhatServeScales(t *testing.T) {
	bounds := func(least, most int) serveconfig.Bounds { return serveconfig.Bounds{Least: least, Most: most} }
	for name, c := range map[string]struct {
		deployments string
		want        []serveconfig.Scaled
	}{
		"both bounds":                       {`[{"name":"M","autoscaling_config":{"min_replicas":2,"max_replicas":8}}]`, []serveconfig.Scaled{{"M", bounds(2, 8), 1}}},
		"to nothing":                        {`[{"name":"M","autoscaling_config":{"min_replicas":0,"max_replicas":8}}]`, []serveconfig.Scaled{{"M", bounds(0, 8), 1}}},
		"Serve's own bounds":                {`[{"name":"M","autoscaling_config":{}}]`, []serveconfig.Scaled{{"M", bounds(1, 1), 1}}},
		"Serve's own bounds of auto":        {`[{"name":"M","num_replicas":"auto","autoscaling_config":{}}]`, []serveconfig.Scaled{{"M", bounds(1, 100), 1}}},
		"gangs":                             {`[{"name":"M","autoscaling_config":{"max_replicas":8},"gang_scheduling_config":{"gang_size":4}}]`, []serveconfig.Scaled{{"M", bounds(1, 8), 4}}},
		"not a fixed number":                {`[{"name":"M","num_replicas":3}]`, nil},
		"not what its code says":            {`[{"name":"M","num_replicas":"auto"}]`, nil},
		"not null":                          {`[{"name":"M","autoscaling_config":null}]`, nil},
		"not bounds that Serve refuses":     {`[{"name":"M","autoscaling_config":{"min_replicas":4,"max_replicas":2}}]`, nil},
		"not bounds that are no numbers":    {`[{"name":"M","autoscaling_config":{"min_replicas":"4"}}]`, nil},
		"not one without a name":            {`[{"autoscaling_config":{"max_replicas":2}}]`, nil},
		"not a list that is none":           {`{}`, nil},
		"not what is no object, but others": {`[7,{"name":"M","autoscaling_config":{"max_replicas":2}}]`, []serveconfig.Scaled{{"M", bounds(1, 2), 1}}},
	} {
		if diff := cmp.Diff(c.want, deployed(t, c.deployments).Scaled()); diff != "" {
			t.Errorf("%s: want -, have +\n%s", name, diff)
		}
	}
}

func TestHolding_StaysWithinTheBounds(t *testing.T) {
	for name, c := range map[string]struct {
		least, most, gang, replicas int
		capped                      bool
		want                        serveconfig.Bounds
	}{
		"as many as run":                  {1, 8, 1, 4, false, serveconfig.Bounds{Least: 4, Most: 8}},
		"no more than are allowed":        {1, 3, 1, 4, false, serveconfig.Bounds{Least: 3, Most: 3}},
		"no fewer than are wanted anyway": {5, 8, 1, 4, false, serveconfig.Bounds{Least: 5, Most: 8}},
		"and not one more":                {1, 8, 1, 4, true, serveconfig.Bounds{Least: 4, Most: 4}},
		"none of none":                    {0, 8, 1, 0, false, serveconfig.Bounds{Least: 0, Most: 8}},
		"Serve takes no most of none":     {0, 8, 1, 0, true, serveconfig.Bounds{Least: 0, Most: 1}},
		"whole gangs":                     {2, 8, 2, 3, true, serveconfig.Bounds{Least: 4, Most: 4}},
	} {
		scaled := serveconfig.Scaled{Bounds: serveconfig.Bounds{Least: c.least, Most: c.most}, Gang: c.gang}
		if got := scaled.Holding(c.replicas, c.capped); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestBounded_ChangesNothingElse(t *testing.T) {
	for name, c := range map[string]struct{ have, want string }{
		"the named one": {
			`[{"name":"M","autoscaling_config":{"max_replicas":8,"min_replicas":1,"x":1.5}},{"name":"N","autoscaling_config":{"max_replicas":2}}]`,
			`[{"autoscaling_config":{"max_replicas":6,"min_replicas":4,"x":1.5},"name":"M"},{"name":"N","autoscaling_config":{"max_replicas":2}}]`,
		},
		"initial_replicas go with them": {
			`[{"name":"M","autoscaling_config":{"initial_replicas":2,"max_replicas":8}}]`,
			`[{"autoscaling_config":{"initial_replicas":4,"max_replicas":6,"min_replicas":4},"name":"M"}]`,
		},
		"and no further": {
			`[{"name":"M","autoscaling_config":{"initial_replicas":8,"max_replicas":8}}]`,
			`[{"autoscaling_config":{"initial_replicas":6,"max_replicas":6,"min_replicas":4},"name":"M"}]`,
		},
		"initial_replicas of null stay": {
			`[{"name":"M","autoscaling_config":{"initial_replicas":null,"max_replicas":8}}]`,
			`[{"autoscaling_config":{"initial_replicas":null,"max_replicas":6,"min_replicas":4},"name":"M"}]`,
		},
		"not one of a fixed number": {`[{"name":"M","num_replicas":3}]`, `[{"name":"M","num_replicas":3}]`},
	} {
		got := deployed(t, c.have).Bounded(map[string]serveconfig.Bounds{"M": {Least: 4, Most: 6}})
		want := `{"deployments":` + c.want + `,"import_path":"app:v1","name":"text"}`
		if string(got) != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	application := deployed(t, `[{"name":"M"}]`)
	if got := application.Bounded(nil); string(got) != string(application.Raw) {
		t.Errorf("without bounds it became %s", got)
	}
}

// TestBounded_IsReadAsItWasBounded for any bounds that Serve takes.
func TestBounded_IsReadAsItWasBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(0, 20).Draw(t, "least")
		want := serveconfig.Bounds{Least: least, Most: rapid.IntRange(max(1, least), 40).Draw(t, "most")}
		raw, err := json.Marshal(map[string]any{"name": "a", "deployments": []any{map[string]any{
			"name": "M", "autoscaling_config": map[string]any{"min_replicas": 1, "max_replicas": 40},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		after := serveconfig.Application{Raw: serveconfig.Application{Raw: raw}.Bounded(map[string]serveconfig.Bounds{"M": want})}.Scaled()
		if len(after) != 1 || after[0].Bounds != want {
			t.Fatalf("%+v, want %+v", after, want)
		}
	})
}

func TestCanSleep_WhereOneNeedsNoReplica(t *testing.T) {
	for deployments, want := range map[string]bool{
		`[{"name":"M","autoscaling_config":{"min_replicas":0,"max_replicas":2}}]`: true,
		`[{"name":"M","autoscaling_config":{"min_replicas":1,"max_replicas":2}}]`: false,
		`[{"name":"M","num_replicas":1}]`:                                         false,
	} {
		if got := parsed(t, `{"applications":[{"name":"text","deployments":`+deployments+`}]}`).CanSleep; got != want {
			t.Errorf("%s: %v, want %v", deployments, got, want)
		}
	}
}
