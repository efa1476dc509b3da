package launcher

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// What a report may count of trials, and how large their names and values may be, in bytes.
const (
	maxTrials        = 10_000
	maxParameters    = 32
	maxParameterName = 63
	maxValue         = 256
	maxNumber        = 32
)

// TuneReport has the counts of the trials of a study, and the best one.
type TuneReport struct {
	// Trials counts all of the study. Running, Succeeded, Failed and Pruned count those in that state; the rest were interrupted.
	Trials, Running, Succeeded, Failed, Pruned int32
	// Waiting is how many gangs wait for places, beside those that run.
	Waiting int32
	// Holder is the job that has the storage, empty where the driver has it.
	Holder string
	// Best is the best trial that has succeeded, nil before one has.
	Best *BestTrial
}

// BestTrial is a trial with its values.
type BestTrial struct {
	Trial int32
	// Value is that of the metric: a number.
	Value string
	// Parameters are the values by name; none where the report had no room for them.
	Parameters map[string]string
}

// saidTune is a TuneReport as it is written.
type saidTune struct {
	Trials    int32     `json:"trials"`
	Running   int32     `json:"running"`
	Succeeded int32     `json:"succeeded"`
	Failed    int32     `json:"failed"`
	Pruned    int32     `json:"pruned"`
	Waiting   int32     `json:"waiting"`
	Holder    string    `json:"holder"`
	Best      *saidBest `json:"best"`
}

type saidBest struct {
	Trial      int32             `json:"trial"`
	Value      string            `json:"value"`
	Parameters map[string]string `json:"parameters"`
}

// report returns what was said, fit to be shown.
func (s *saidTune) report() *TuneReport {
	report := &TuneReport{
		Trials: s.Trials, Running: s.Running, Succeeded: s.Succeeded, Failed: s.Failed, Pruned: s.Pruned, Waiting: s.Waiting,
		Holder: clean(s.Holder),
	}
	if s.Best != nil {
		report.Best = &BestTrial{Trial: s.Best.Trial, Value: s.Best.Value, Parameters: map[string]string{}}
		for name, value := range s.Best.Parameters {
			report.Best.Parameters[name] = clean(value)
		}
	}
	return report
}

// isValid reports whether every number and name is one that a report can have.
func (s *saidTune) isValid() bool {
	sum := int32(0)
	for _, count := range []int32{s.Running, s.Succeeded, s.Failed, s.Pruned} {
		if !isWithin(count, maxTrials) {
			return false
		}
		sum += count
	}
	return isWithin(s.Trials, maxTrials) && sum <= s.Trials && isWithin(s.Waiting, maxReplicas) && (s.Best == nil || s.Best.isValid(s.Trials))
}

func (s *saidBest) isValid(trials int32) bool {
	value, err := strconv.ParseFloat(s.Value, 64)
	if err != nil || len(s.Value) > maxNumber || math.IsInf(value, 0) || math.IsNaN(value) || !isWithin(s.Trial, trials-1) || len(s.Parameters) > maxParameters {
		return false
	}
	for name, value := range s.Parameters {
		if !isName(name) || utf8.RuneCountInString(value) > maxValue {
			return false
		}
	}
	return true
}

// isName reports whether a text can be the name of a parameter.
func isName(text string) bool {
	for i, char := range []byte(text) {
		isLetter := char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'
		isOther := char >= '0' && char <= '9' || char == '_' || char == '-'
		if !isLetter && (i == 0 || !isOther) {
			return false
		}
	}
	return text != "" && len(text) <= maxParameterName
}
