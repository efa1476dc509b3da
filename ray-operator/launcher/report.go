package launcher

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// ReportNamespace is where reports are in the GCS' internal key-value store.
	ReportNamespace = "heliostat"
	// MaxReport is how many bytes a report may have.
	MaxReport = 4096
)

// ReportKey returns the key of the report of a submission.
func ReportKey(submission string) string { return "gang/" + submission }

// What a report may count.
const (
	maxRound    = 99_999 // HELIOSTAT_ROUND has five digits for it
	maxReplicas = 1024
	maxCode     = 255
	maxPort     = 65535
	// maxName is how many bytes the name of a pod has at most.
	maxName = 253
	// maxTime is the last second of the year 9999.
	maxTime = 253_402_300_799
	// maxLost and maxLines are how many entries are kept of a list: the last ones.
	maxLost  = 8
	maxLines = 20
)

// State is what a gang does.
type State string

// The states of a gang.
const (
	Gathering State = "Gathering"
	Running   State = "Running"
	Ended     State = "Ended"
)

// Kind is a sort of end of a round.
type Kind string

// The kinds of ends of a round.
const (
	// Exit is a process that ended.
	Exit Kind = "Exit"
	// Lost is a place that was lost.
	Lost Kind = "Lost"
	// OutOfMemory is an agent that Ray killed because its node had no memory left.
	OutOfMemory Kind = "OutOfMemory"
	// Drained is a place on a node that drains.
	Drained Kind = "Drained"
	// NotFound is a program that is not in the image.
	NotFound Kind = "NotFound"
	// DiskFull is a disk that takes nothing more, so that a process cannot start.
	DiskFull Kind = "DiskFull"
	// Unreachable is a place that does not reach the first one.
	Unreachable Kind = "Unreachable"
	// PortTaken is a port that another process has.
	PortTaken Kind = "PortTaken"
	// Gather is a wait for places that ended without them.
	Gather Kind = "Gather"
	// Trials is that too many trials failed, or none succeeded.
	Trials Kind = "Trials"
	// MetricMissing is the same, where the output of the last one had no value of the metric.
	MetricMissing Kind = "MetricMissing"
	// Study is a study of trials that cannot begin or go on.
	Study Kind = "Study"
)

// Report is what the launcher says of a gang. Any code on the cluster can write one.
type Report struct {
	State State
	// Round is the number of the round, from 1; 0 before the first one.
	Round int32
	// Restarts counts rounds that count towards MaxRestarts, and Losses those that used up one of LossesLeft.
	Restarts, Losses int32
	// Replicas is how many places the round has, and Ready how many of them are there.
	Replicas, Ready int32
	// Started is when the first process of the attempt started, zero before.
	Started time.Time
	// Waiting is what the gang waits for, for people; empty where it waits for nothing.
	Waiting string
	// Last is why the last round ended, nil if none has.
	Last *End
	// Lost are the names of the pods of places that were lost, at most the last eight.
	Lost []string
	// Tune has the counts of trials and the best one, nil for a gang that runs once.
	Tune *TuneReport
	// Page is where the program serves a page of its own, nil where it serves none.
	Page *Page
}

// Page is a port of a pod.
type Page struct {
	Pod  string
	Port int32
}

// End is why a round ended.
type End struct {
	Time time.Time
	Kind Kind
	// Process is the one that was first, such as worker/3; Pod and Node are where it was.
	Process, Pod, Node string
	// Code is the process's exit code.
	Code int32
	// Message is for people, and Lines are the last lines of the process's output.
	Message string
	Lines   []string
}

// HasSameMeaning reports whether a report means the same as another one: all is equal but times.
func (r Report) HasSameMeaning(other Report) bool {
	return reflect.DeepEqual(r.timeless(), other.timeless())
}

// timeless returns the report with no time but whether a process has started.
func (r Report) timeless() Report {
	if !r.Started.IsZero() {
		r.Started = time.Unix(0, 0)
	}
	if r.Last != nil {
		last := *r.Last
		last.Time = time.Time{}
		r.Last = &last
	}
	return r
}

// said is a report as it is written.
type said struct {
	Version  int       `json:"version"`
	State    State     `json:"state"`
	Round    int32     `json:"round"`
	Restarts int32     `json:"restarts"`
	Losses   int32     `json:"losses"`
	Replicas int32     `json:"replicas"`
	Ready    int32     `json:"ready"`
	Started  int64     `json:"started"`
	Waiting  string    `json:"waiting"`
	Last     *saidEnd  `json:"last"`
	Lost     []string  `json:"lost"`
	Tune     *saidTune `json:"tune"`
	Page     *saidPage `json:"page"`
}

type saidPage struct {
	Pod  string `json:"pod"`
	Port int32  `json:"port"`
}

type saidEnd struct {
	Time    int64    `json:"time"`
	Kind    Kind     `json:"kind"`
	Process string   `json:"process"`
	Pod     string   `json:"pod"`
	Node    string   `json:"node"`
	Code    int32    `json:"code"`
	Message string   `json:"message"`
	Lines   []string `json:"lines"`
}

// ParseReport reads a report. It returns false for anything else: other JSON, more than MaxReport bytes, another version, a
// state, kind or number that no report has, or bytes that are no UTF-8.
func ParseReport(data []byte) (Report, bool) {
	var s said
	if len(data) > MaxReport || !utf8.Valid(data) || json.Unmarshal(data, &s) != nil || !s.isValid() {
		return Report{}, false
	}
	report := Report{
		State: s.State, Round: s.Round, Restarts: s.Restarts, Losses: s.Losses, Replicas: s.Replicas, Ready: min(s.Ready, s.Replicas),
		Started: moment(s.Started), Waiting: clean(s.Waiting), Lost: cleaned(s.Lost, maxLost),
	}
	if s.Tune != nil {
		report.Tune = s.Tune.report()
	}
	if s.Page != nil {
		report.Page = &Page{Pod: s.Page.Pod, Port: s.Page.Port}
	}
	if s.Last != nil {
		report.Last = &End{
			Time: moment(s.Last.Time), Kind: s.Last.Kind, Process: clean(s.Last.Process), Pod: clean(s.Last.Pod),
			Node: clean(s.Last.Node), Code: s.Last.Code, Message: clean(s.Last.Message), Lines: cleaned(s.Last.Lines, maxLines),
		}
	}
	return report, true
}

// isValid reports whether every word and number is one that a report can have.
func (s *said) isValid() bool {
	switch s.State {
	case Gathering, Running, Ended:
	default:
		return false
	}
	return s.Version == version && isWithin(s.Started, maxTime) &&
		isWithin(s.Round, maxRound) && isWithin(s.Restarts, maxRound) && isWithin(s.Losses, maxRound) &&
		isWithin(s.Replicas, maxReplicas) && isWithin(s.Ready, maxReplicas) && (s.Last == nil || s.Last.isValid()) && (s.Page == nil || s.Page.isValid()) &&
		(s.Tune == nil || s.Tune.isValid())
}

// isValid reports whether a page can be one: its pod has a name that a terminal shows as it is.
func (s *saidPage) isValid() bool {
	return s.Pod != "" && len(s.Pod) <= maxName && clean(s.Pod) == s.Pod && s.Port > 0 && isWithin(s.Port, maxPort)
}

func (s *saidEnd) isValid() bool {
	switch s.Kind {
	case Exit, Lost, OutOfMemory, Drained, NotFound, DiskFull, Unreachable, PortTaken, Gather, Trials, MetricMissing, Study:
		return isWithin(s.Time, maxTime) && isWithin(s.Code, maxCode)
	default:
		return false
	}
}

func isWithin[N int32 | int64](n, most N) bool { return n >= 0 && n <= most }

// moment returns the time of a second of Unix time; zero for 0.
func moment(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// cleaned returns the last texts of a list, fit to be shown.
func cleaned(texts []string, most int) []string {
	var all []string
	for _, text := range texts[max(0, len(texts)-most):] {
		all = append(all, clean(text))
	}
	return all
}

// clean returns a text without characters that a terminal or a reader could take for something else.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case unicode.IsGraphic(r):
			return r
		default:
			return -1
		}
	}, text)
}
