package corpus_test

import (
	"reflect"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
)

func collect(t *testing.T, options corpus.Options) []corpus.Input {
	t.Helper()
	var all []corpus.Input
	for input, err := range corpus.All(options) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, input)
	}
	return all
}

func TestTheSameSeedGivesTheSameInputs(t *testing.T) {
	options := corpus.Options{Random: 50, Mutations: 50, Seed: 7}
	one, two := collect(t, options), collect(t, options)
	if !reflect.DeepEqual(one, two) {
		t.Error("the same options give other inputs")
	}
	if want := len(corpus.Rows()) + 100; len(one) != want {
		t.Errorf("there are %d inputs, want %d", len(one), want)
	}
	if options.Seed = 8; reflect.DeepEqual(one, collect(t, options)) {
		t.Error("another seed gives the same inputs")
	}
}

// TestInputsAreGoodAndBad: inputs that are all of one kind would show nothing.
func TestInputsAreGoodAndBad(t *testing.T) {
	all := collect(t, corpus.Options{Random: 300, Mutations: 300, Seed: 1})[len(corpus.Rows()):]
	good := map[bool]int{}
	for i, input := range all {
		if len(input.Refusals) == 0 {
			good[i < 300]++
		}
	}
	for _, mixtures := range []bool{true, false} {
		if n := good[mixtures]; n < 20 || n > 280 {
			t.Errorf("%d of 300 are good (mixtures: %v), want 20 to 280", n, mixtures)
		}
	}
}
