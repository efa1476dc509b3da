package spelling_test

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
)

func TestRemedy_NamesWhatWasMeant(t *testing.T) {
	near := []string{"gpu", "gpus", "workers"}
	const none = "give one of gpu, gpus, workers"
	many := strings.Split("n"+strings.Repeat(",n", 22), ",")
	for name, c := range map[string]struct {
		given string
		known []string
		want  string
	}{
		"one letter is another":      {"kindz", []string{"codes", "kinds"}, `write "kinds"`},
		"one letter is missing":      {"replica", []string{"group", "replicas"}, `write "replicas"`},
		"the case is another":        {"COMPUTECLUSTER", []string{"ComputeCluster"}, `write "ComputeCluster"`},
		"a letter too many":          {"nworkers", near, `write "workers"`},
		"two letters changed places": {"wokrers", near, `write "workers"`},
		"the nearest of two":         {"gpuss", near, `write "gpus"`},
		"half of another word":       {"workload", near, none},
		"two of five are missing":    {"orker", near, none},
		"a letter beyond ASCII":      {"größe", []string{"größen"}, `write "größen"`},
		"a short name, two letters":  {"ab", []string{"id"}, "give one of id"},
		"none is near":               {"pods", []string{"clusters", "jobs"}, "give one of clusters, jobs"},
		"nothing was given":          {"", []string{"clusters", "jobs"}, "give one of clusters, jobs"},
		"a name without end":         {strings.Repeat("a", 1<<20), []string{"clusters"}, "give one of clusters"},
		"a known name without end":   {"a", []string{strings.Repeat("b", 200)}, "give one of " + strings.Repeat("b", 200)},
		"more than a person reads":   {"pods", many, "give one of " + strings.Join(many[:20], ", ") + " and 3 more"},
		"nothing is known to choose": {"pods", nil, "leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spelling.Remedy(c.given, c.known); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
