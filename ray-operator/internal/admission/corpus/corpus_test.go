package corpus_test

import (
	"iter"
	"reflect"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
)

// kinds are the inputs of each kind, with the number of its rows.
var kinds = map[string]struct {
	rows   int
	inputs func(corpus.Options) iter.Seq2[corpus.Input, error]
}{
	"clusters": {len(corpus.Clusters().Rows), corpus.Clusters().Inputs},
	"jobs":     {len(corpus.Jobs().Rows), corpus.Jobs().Inputs},
	"services": {len(corpus.Services().Rows), corpus.Services().Inputs},
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
		all := collect(t, kind.inputs(corpus.Options{Random: 300, Mutations: 300, Seed: 1}))[kind.rows:]
		good := map[bool]int{}
		for i, input := range all {
			if len(input.Refusals) == 0 {
				good[i < 300]++
			}
		}
		for _, mixtures := range []bool{true, false} {
			if n := good[mixtures]; n < 20 || n > 280 {
				t.Errorf("%s: %d of 300 are good (mixtures: %v), want 20 to 280", name, n, mixtures)
			}
		}
	}
}
