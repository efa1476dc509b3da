package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a run in which Ray decided one snapshot of two.
func sample() *Result {
	return &Result{
		Sizes: map[string]Size{"small": {Nodes: 20, Pending: 100, Shapes: 5, Gangs: 2}},
		Kinds: map[string]map[string]float64{"cpu": {"CPU": 8}, "gpu": {"CPU": 4, "GPU": 2}},
		Rays:  []Answer{{Name: "small", Seconds: 5, Asked: map[string]int{"cpu": 10}}, {Name: "large", TooLong: 300}},
		Ours:  []Answer{{Name: "small", Seconds: 0.002, Asked: map[string]int{"cpu": 9, "gpu": 2}}, {Name: "large", Seconds: 0.01, Asked: map[string]int{"cpu": 7}}, {Name: "alone", Seconds: 2}},
		Again: []Answer{{Name: "small", Seconds: 0.003}, {Name: "large", Seconds: 0.01}, {Name: "alone", Seconds: 1}},
	}
}

func TestPageComparesWhatWasDecidedByBoth(t *testing.T) {
	r := sample()
	r.compare(reasons{"small": {"cpu": "because", "gpu": "of this"}})
	page := r.page()
	for _, want := range []string{
		"| small: 20 nodes, 100 pending in 5 shapes, 2 gangs | 5.0 s | 2.0 ms, 3.0 ms | 2500 × | 10 | 11 | 1.10 | 80 | 80 | 0 | 4 |",
		"| not done after 300 s | 10.0 ms, 10.0 ms |  |  | 7 |  |  | 56 |  | 0 |",
		"- small: Ray 10 cpu; ours 9 cpu, 2 gpu",
		"- large: Ray does not say; ours 7 cpu",
		"| alone | 2.0 s, 1.0 s |",
		"| small | cpu | 10 | 9 | because |",
		"| small | gpu | 0 | 2 | of this |",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the page has no line %q:\n%s", want, page)
		}
	}
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "autoscale.md")); err != nil || string(text) != page {
		t.Errorf("the page was not written: %v", err)
	}
}

func TestARunTellsWhatIsWrong(t *testing.T) {
	told := reasons{"small": {"cpu": "because", "gpu": "of this"}, "large": {"cpu": "nobody knows yet"}}
	for _, c := range []struct {
		name   string
		change func(*Result, reasons)
		want   string
	}{
		{"nothing", func(*Result, reasons) {}, ""},
		{"a difference without words", func(_ *Result, why reasons) { delete(why["small"], "gpu") }, "Ray asks for 0 gpu, we for 2: say why"},
		{"words without a difference", func(_ *Result, why reasons) { why["small"]["tpu"] = "?" }, "the same number of tpu is asked for"},
		{"too many nodes", func(r *Result, _ reasons) { r.Ours[0].Asked["cpu"] = 11 }, "we ask for 13 nodes, Ray for 10"},
		{"something has no place with Ray", func(r *Result, _ reasons) { r.Rays[0].Left = 1 }, "without a place are 1 of Ray's and 0 of ours"},
		{"something has no place with ours", func(r *Result, _ reasons) { r.Ours[1].Left = 2 }, "without a place are 0 of Ray's and 2 of ours"},
		{"no decision of ours", func(r *Result, _ reasons) { r.Ours = r.Ours[1:] }, "small: there is no decision of ours"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, why := sample(), reasons{"small": {"cpu": told["small"]["cpu"], "gpu": told["small"]["gpu"]}, "large": told["large"]}
			c.change(r, why)
			r.compare(why)
			switch err := r.wrong(why); {
			case err == nil && c.want != "":
				t.Errorf("nothing is wrong, and not %q", c.want)
			case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v is wrong, and not %q", err, c.want)
			}
		})
	}
}

// What is kept in docs/results is of one run, and so is what docs/benchmarks.md shows.
func TestDocsShowTheResults(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var r Result
	if err := json.Unmarshal([]byte(read("results/autoscale.json")), &r); err != nil {
		t.Fatalf("read the results: %v", err)
	}
	if read("results/autoscale.md") != r.page() {
		t.Error("results/autoscale.md is not the page of results/autoscale.json: run make bench-autoscale")
	}
	for _, table := range []string{r.comparison(), r.alone()} {
		if !strings.Contains(read("benchmarks.md"), "\n"+table) {
			t.Errorf("benchmarks.md does not show this table of results/autoscale.json:\n%s", table)
		}
	}
	why, err := readReasons("differences.yaml")
	if err == nil {
		err = r.wrong(why)
	}
	if err != nil {
		t.Error(err)
	}
}
