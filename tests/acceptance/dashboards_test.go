package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestWorked_IsKeptWithEachRelease(t *testing.T) {
	good := func() []live.RayClient {
		var all []live.RayClient
		for _, release := range rayReleases() {
			refusals := map[string]string{"a": "x", "b": "x|y", "c": "x", "d": "x", "e": "x"}
			all = append(all, live.RayClient{Release: release, UploadMB: 100, GrewMiB: []float64{1, 7.9, 2}, Lines: rayLines, IsWhole: true, Refusals: refusals})
		}
		return all
	}
	for name, c := range map[string]struct {
		change func([]live.RayClient) []live.RayClient
		want   bool
	}{
		"all of it":          {func(all []live.RayClient) []live.RayClient { return all }, true},
		"a release less":     {func(all []live.RayClient) []live.RayClient { return all[:1] }, false},
		"memory that grows":  {func(all []live.RayClient) []live.RayClient { all[1].GrewMiB[0] = 8; return all }, false},
		"an upload less":     {func(all []live.RayClient) []live.RayClient { all[0].GrewMiB = all[0].GrewMiB[1:]; return all }, false},
		"a smaller upload":   {func(all []live.RayClient) []live.RayClient { all[0].UploadMB = 99; return all }, false},
		"a line that is off": {func(all []live.RayClient) []live.RayClient { all[0].IsWhole = false; return all }, false},
		"a refusal less":     {func(all []live.RayClient) []live.RayClient { delete(all[1].Refusals, "a"); return all }, false},
	} {
		if outcome, err := worked(c.change(good())); err != nil || outcome.Kept != c.want {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
	samples, err := json.Marshal(good())
	if table := refusalTable(samples); err != nil || !strings.Contains(table, "| 2.52.0 | b | `x\\|y` |\n") {
		t.Errorf("the table is %s (%v)", table, err)
	}
}

func TestOpened_IsKeptWithEachWay(t *testing.T) {
	good := func() []live.RayPages {
		var all []live.RayPages
		for _, way := range originWays() {
			one := live.RayPages{Way: way, At: "https://h/a/b/", Own: []string{"500 api/grafana_health"}}
			for range leastPages {
				one.Pages = append(one.Pages, live.RayPage{Path: "overview", Wrong: []string{
					"500 https://h/a/b/api/grafana_health", "console: Failed to load resource: the server responded with a status of 500 (Internal Server Error)",
				}})
			}
			all = append(all, one)
		}
		return all
	}
	if outcome, err := opened(good()); err != nil || !outcome.Kept {
		t.Errorf("all of it is %+v (%v)", outcome, err)
	}
	for name, change := range map[string]func(all []live.RayPages) []live.RayPages{
		"a way less":  func(all []live.RayPages) []live.RayPages { return all[1:] },
		"a page less": func(all []live.RayPages) []live.RayPages { all[0].Pages = all[0].Pages[1:]; return all },
		"another failure": func(all []live.RayPages) []live.RayPages {
			all[1].Pages[0].Wrong[0] = "500 https://h/a/b/nodes"
			return all
		},
		"a refusal": func(all []live.RayPages) []live.RayPages {
			all[1].Pages[0].Wrong[0] = "403 https://h/a/b/api/grafana_health"
			return all
		},
		"an error of its": func(all []live.RayPages) []live.RayPages {
			all[2].Pages[3].Wrong = []string{"error: x is undefined"}
			return all
		},
		"one more of these": func(all []live.RayPages) []live.RayPages {
			p := &all[2].Pages[3]
			p.Wrong = append(p.Wrong, p.Wrong[1])
			return all
		},
	} {
		if outcome, err := opened(change(good())); err != nil || outcome.Kept {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
}

func TestUpgradedThrough_IsKeptWithoutALoss(t *testing.T) {
	good := live.ProxiedService{Sent: proxiedRequests, Sorts: map[string]int{"fresh": 1, "kept": 1, "long": 1, "stream": 1, "websocket": 1}, Versions: 4, Upgrades: 3}
	for name, c := range map[string]struct {
		change func(*live.ProxiedService)
		want   bool
	}{
		"all of it":      {func(*live.ProxiedService) {}, true},
		"one that fails": {func(p *live.ProxiedService) { p.Failed = 1 }, false},
		"a request less": {func(p *live.ProxiedService) { p.Sent-- }, false},
		"a sort less":    {func(p *live.ProxiedService) { p.Sorts = map[string]int{"fresh": 5} }, false},
		"no upgrade":     {func(p *live.ProxiedService) { p.Upgrades, p.Versions = 0, 1 }, false},
	} {
		one := good
		c.change(&one)
		if outcome, err := upgradedThrough([]live.ProxiedService{one}); err != nil || outcome.Kept != c.want {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
	if _, err := upgradedThrough(nil); err == nil {
		t.Error("specs that upgraded nothing are taken")
	}
}
