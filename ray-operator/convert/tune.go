package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Bounds of tune, as its kind has them: of parameters, of the values of one, of trials, and of those that run at a time.
const (
	mostParameters = 32
	mostValues     = 128
	mostTrials     = 10000
	mostParallel   = 256
)

// tunePart is the search of a job on its way.
type tunePart struct {
	*conversion
	// parametersAt is where the parameters stand.
	parametersAt string
	made         v1beta1.Tune
}

// tellOptuna says what the image of a job with trials needs, once.
func (t *tunePart) tellOptuna(path string) {
	needs := map[v1beta1.TuneAlgorithm]string{
		v1beta1.TuneCMAES: "optuna and cmaes", v1beta1.TuneQMC: "optuna and scipy", v1beta1.TuneGaussianProcess: "optuna, scipy and torch",
	}
	t.adjust(path, "tune.algorithm", fmt.Sprintf("it becomes %s, for which the Python that has Ray needs %s; add that to the image",
		t.made.Algorithm, cmp.Or(needs[t.made.Algorithm], "optuna")))
}

// direction returns which values of a metric are better, by the words of its name, empty where they do not say it.
func direction(metric string) v1beta1.TuneDirection {
	isLess, isMore := lessIsBetter.MatchString(strings.ToLower(metric)), moreIsBetter.MatchString(strings.ToLower(metric))
	switch {
	case isLess && !isMore:
		return v1beta1.Minimize
	case isMore && !isLess:
		return v1beta1.Maximize
	default:
		return ""
	}
}

// Words of metrics that say which values are better.
var (
	lessIsBetter = regexp.MustCompile(`(^|[^a-z])(loss|error)([^a-z]|$)`)
	moreIsBetter = regexp.MustCompile(`(^|[^a-z])(accuracy|auc|f1)([^a-z]|$)`)
)

// foreignLetter matches what names of parameters do not have.
var foreignLetter = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// nameOf is a parameter's name as tune takes it: without the dashes of an option, and with _ for other signs.
func (t *tunePart) nameOf(path, name string) string {
	made := foreignLetter.ReplaceAllString(strings.TrimLeft(name, "-"), "_")
	if made != name {
		t.adjust(path, "tune.parameters[].name", fmt.Sprintf("it becomes %.60q, as names have letters, digits, - and _, with a letter first", made))
	}
	return made
}

// add adds a parameter, whose list of values stands at a path. One that has a single number becomes that value.
func (t *tunePart) add(path string, p v1beta1.TuneParameter) {
	if many := len(p.Values); many > mostValues {
		t.refuse(path, fmt.Sprintf("it has %d values, and a parameter has at most %d; list fewer, or give min and max", many, mostValues))
		p.Values = p.Values[:mostValues]
	}
	if len(t.made.Parameters) == mostParameters {
		t.refuse(t.parametersAt, fmt.Sprintf("a search has at most %d parameters; take some out", mostParameters))
	}
	if p.Min == p.Max && p.Min != "" {
		p = v1beta1.TuneParameter{Name: p.Name, Type: p.Type, Values: []string{p.Min}}
	}
	t.made.Parameters = append(t.made.Parameters, p)
}

// names are those of the parameters.
func (t *tunePart) names() []string {
	var all []string
	for i := range t.made.Parameters {
		all = append(all, t.made.Parameters[i].Name)
	}
	return all
}

// within returns a number, and refuses one that is not between 1 and a bound.
func (t *tunePart) within(path string, given, most int32) int32 {
	if given < 1 || given > most {
		t.refuse(path, fmt.Sprintf("it is %d; give a number from 1 to %d", given, most))
	}
	return min(max(given, 1), most)
}

// limitParallel has no more trials run at a time than there are.
func (t *tunePart) limitParallel(path string, given int32) {
	given = t.within(path, given, mostParallel)
	if t.made.MaxTrials > 0 && given > t.made.MaxTrials {
		t.adjust(path, "tune.parallelTrials", fmt.Sprintf("it becomes %d, as there are no more trials", t.made.MaxTrials))
		given = t.made.MaxTrials
	}
	t.made.ParallelTrials = given
}

// seed takes a number that makes trials repeatable.
func (t *tunePart) seed(path string, given int64) {
	if given < 0 || given > math.MaxInt32 {
		t.note(Row{Path: path, Verdict: Dropped, Differs: true, Text: "a seed is a number from 0 to 2147483647; set tune.seed to such a one"})
		return
	}
	t.made.Seed = new(int32(given))
	t.keep(path)
}

// list returns the numbers of a Float parameter with a step, as a Grid needs them.
func list(p *v1beta1.TuneParameter) []string {
	low, err := strconv.ParseFloat(p.Min, 64)
	high, ofHigh := strconv.ParseFloat(p.Max, 64)
	step, ofStep := strconv.ParseFloat(p.Step, 64)
	if cmp.Or(err, ofHigh, ofStep) != nil || step <= 0 || (high-low)/step >= mostValues {
		return nil
	}
	var all []string
	for i := 0; low+float64(i)*step <= high+step*1e-9; i++ {
		number := strconv.FormatFloat(low+float64(i)*step, 'g', 12, 64)
		all = append(all, number)
	}
	return all
}

// listGrid lists the numbers of Float parameters, where the algorithm tries all combinations.
func (t *tunePart) listGrid(path func(number int) string) {
	if t.made.Algorithm != v1beta1.TuneGrid {
		return
	}
	for i := range t.made.Parameters {
		p := &t.made.Parameters[i]
		if p.Type != v1beta1.ParameterFloat || len(p.Values) > 0 {
			continue
		}
		values := list(p)
		if len(values) == 0 {
			t.refuse(path(i), fmt.Sprintf("a grid needs values, and a range with a step has at most %d; list the values, or use another algorithm", mostValues))
			continue
		}
		t.adjust(path(i), "tune.parameters[].values", "a grid has the numbers of the range one by one")
		*p = v1beta1.TuneParameter{Name: p.Name, Type: p.Type, Values: values}
	}
}

// variableOf is the name of the variable in which a program finds a parameter.
func variableOf(name string) string { return validate.ParameterVariable(name) }
