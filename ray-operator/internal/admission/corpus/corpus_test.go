package corpus_test

import (
	"iter"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// kinds are the inputs of each kind, with the number of its rows.
var kinds = map[string]struct {
	rows   int
	inputs func(corpus.Options) iter.Seq2[corpus.Input, error]
}{
	"clusters":  {len(corpus.Clusters().Rows), corpus.Clusters().Inputs},
	"jobs":      {len(corpus.Jobs().Rows), corpus.Jobs().Inputs},
	"services":  {len(corpus.Services().Rows), corpus.Services().Inputs},
	"schedules": {len(corpus.Schedules().Rows), corpus.Schedules().Inputs},
}

func collect(t *testing.T, inputs iter.Seq2[corpus.Input, error]) []corpus.Input {
	t.Helper()
	var all []corpus.Input
	for input, err := range inputs {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, input)
	}
	return all
}

func TestTheSameSeedGivesTheSameInputs(t *testing.T) {
	for name, kind := range kinds {
		options := corpus.Options{Random: 50, Mutations: 50, Seed: 7}
		one, two := collect(t, kind.inputs(options)), collect(t, kind.inputs(options))
		if !reflect.DeepEqual(one, two) {
			t.Errorf("%s: the same options give other inputs", name)
		}
		if want := kind.rows + 100; len(one) != want {
			t.Errorf("%s: there are %d inputs, want %d", name, len(one), want)
		}
		if options.Seed = 8; reflect.DeepEqual(one, collect(t, kind.inputs(options))) {
			t.Errorf("%s: another seed gives the same inputs", name)
		}
	}
}

// TestInputsAreGoodAndBad: inputs that are all of one sort would show nothing.
func TestInputsAreGoodAndBad(t *testing.T) {
	for name, kind := range kinds {
		all := collect(t, kind.inputs(corpus.Options{Random: 150, Mutations: 150, Seed: 1}))[kind.rows:]
		good := map[bool]int{}
		for i, input := range all {
			if len(input.Refusals) == 0 {
				good[i < 150]++
			}
		}
		for _, mixtures := range []bool{true, false} {
			if n := good[mixtures]; n < 10 || n > 140 {
				t.Errorf("%s: %d of 150 are good (mixtures: %v), want 10 to 140", name, n, mixtures)
			}
		}
	}
}

var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// brokenRules returns the IDs of the rules that inputs of the corpus break.
func brokenRules(t *testing.T) map[string]bool {
	t.Helper()
	broken := map[string]bool{}
	for _, kind := range kinds {
		for _, input := range collect(t, kind.inputs(corpus.Options{})) {
			for _, refusal := range input.Refusals {
				broken[refusal.Rule] = true
			}
		}
	}
	return broken
}

// TestRules_HaveAnIDAPageAndAnInput: programs lean on the ID of a rule. It is one rule's alone, the reference names
// it, and there is an input that the rule refuses.
func TestRules_HaveAnIDAPageAndAnInput(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	refuses, seen := brokenRules(t), map[string]string{}
	for _, rules := range [][]validate.Rule{validate.Rules(), validate.JobRules(), validate.ServiceRules(), validate.ScheduleRules()} {
		ofList := map[string]bool{}
		for _, rule := range rules {
			// Jobs and services share rules about where they run: the same words of the same field.
			what := rule.Field + ": " + rule.Text()
			if former, ok := seen[rule.ID]; ofList[rule.ID] || ok && former != what || !kebab.MatchString(rule.ID) {
				t.Errorf("the ID %q is not kebab-case, or not of one rule alone", rule.ID)
			}
			seen[rule.ID], ofList[rule.ID] = what, true
			if !strings.Contains(string(page), "| `"+rule.ID+"` | ") {
				t.Errorf("the reference lacks the rule %s; run make generate", rule.ID)
			}
			if !refuses[rule.ID] && !slices.Contains(corpus.WithoutRow, rule.ID) {
				t.Errorf("the rule %s refuses no input of the corpus", rule.ID)
			}
		}
	}
	for id := range refuses {
		if _, ok := seen[id]; !ok {
			t.Errorf("inputs break the rule %q, which is not there", id)
		}
	}
}
