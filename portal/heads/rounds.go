package heads

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Round is the log of a process of a gang in one round of an attempt.
type Round struct {
	Number int32
	// Log is the file that the process writes. HasOlder reports whether a large log was rotated, so that it has an older part too.
	Log      headclient.Log
	HasOlder bool
}

// rotated ends the name of the older part of a log.
const rotated = ".1"

// File returns the file of a part of the log.
func (r Round) File(isOlder bool) headclient.Log {
	file := r.Log
	if isOlder {
		file.File += rotated
	}
	return file
}

// Process names a process of a gang in an attempt of a ClusterJob.
type Process struct {
	// Submission is the ID of the attempt in Ray's job API.
	Submission string
	// Name is that of the process, such as worker/3.
	Name string
}

// stem is what the names of its logs begin with, before the number of the round.
func (p Process) stem() string {
	return "job-driver-" + p.Submission + "-" + strings.ReplaceAll(p.Name, "/", "-") + "-r"
}

// processName matches the names of processes. No role has more than 4096 processes.
var processName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/(0|[1-9][0-9]{0,3})$`)

// IsProcessName reports whether a process of a gang may have a name.
func IsProcessName(name string) bool { return processName.MatchString(name) }

// ListRounds returns the rounds of a process whose logs are on Ray nodes of a cluster, the oldest first, and how many Ray nodes
// did not answer.
func (h *Heads) ListRounds(ctx context.Context, on Reference, of Process) (rounds []Round, silent int, err error) {
	err = h.ask(ctx, on, func(c *Conversation) error {
		rounds, silent, err = c.ListRounds(ctx, of)
		return err
	})
	return rounds, silent, err
}

// ListRounds returns the rounds of a process, as Heads does. With encryption it is a *Refusal: no way to the agent of a node is
// encrypted then.
func (c *Conversation) ListRounds(ctx context.Context, of Process) (rounds []Round, silent int, err error) {
	if isEncrypted(c.pod) {
		return nil, 0, &Refusal{
			Sort: Conflict, Code: reason.OutputUnreadable.Code,
			Message: fmt.Sprintf("ComputeCluster %s encrypts its traffic, and the logs of single processes cannot be reached then", c.cluster.Name),
			Remedy:  "Read the output of the job, and set gang.output to All in a new job to have all processes there",
		}
	}
	found, missing, err := c.FindLogs(ctx, of.stem()+"*.log*")
	if err != nil {
		return nil, 0, err
	}
	return sortRounds(of.stem(), found), len(missing), nil
}

// roundFile matches what follows in the name of a log after its stem.
var roundFile = regexp.MustCompile(`^([1-9][0-9]{0,4})\.log(\.1)?$`)

// sortRounds returns the rounds whose logs are among files, the oldest first.
func sortRounds(stem string, files []headclient.Log) []Round {
	var rounds []Round
	for _, file := range files {
		rest, isIts := strings.CutPrefix(file.File, stem)
		parts := roundFile.FindStringSubmatch(rest)
		if !isIts || parts == nil {
			continue
		}
		number, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil { // it has at most five digits
			continue
		}
		at := slices.IndexFunc(rounds, func(one Round) bool { return one.Number == int32(number) })
		if at < 0 {
			at = len(rounds)
			rounds = append(rounds, Round{Number: int32(number), Log: headclient.Log{Node: file.Node, File: strings.TrimSuffix(file.File, rotated)}})
		}
		rounds[at].HasOlder = rounds[at].HasOlder || parts[2] != ""
	}
	slices.SortFunc(rounds, func(a, b Round) int { return cmp.Compare(a.Number, b.Number) })
	return rounds
}
