package heads

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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
var processName = regexp.MustCompile(`^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/(0|[1-9][0-9]{0,3})$`)

// ParseProcess returns the role and the number of a process by its name, and whether a process of a gang may have that name.
func ParseProcess(name string) (role string, number int, is bool) {
	parts := processName.FindStringSubmatch(name)
	if parts == nil {
		return "", 0, false
	}
	number, err := strconv.Atoi(parts[2])
	return parts[1], number, err == nil
}

// mostNumbers is how many numbers executors of Spark may have, as one that is replaced gives way to one of another number.
const mostNumbers = 1 << 16

// CountProcesses returns how many processes a role of a gang has at most, and whether the gang has that role. Spark's Master counts
// as one of a role of its own.
func CountProcesses(gang *v1beta1.Gang, role string) (count int, has bool) {
	isSpark := gang.Framework == v1beta1.FrameworkSpark
	if isSpark && role == v1beta1.GangRoleMaster {
		return 1, true
	}
	at := slices.IndexFunc(gang.Roles, func(one v1beta1.GangRole) bool { return one.Name == role })
	if at < 0 {
		return 0, false
	}
	if isSpark && role == v1beta1.GangRoleExecutor {
		return mostNumbers, true
	}
	of := gang.Roles[at]
	count = int(max(1, of.Replicas))
	if of.Start != v1beta1.StartPerReplica {
		count *= int(max(1, of.ProcessesPerReplica))
	}
	return count, true
}

// RoleNames returns the names of a gang's roles.
func RoleNames(gang *v1beta1.Gang) []string {
	var names []string
	for i := range gang.Roles {
		names = append(names, gang.Roles[i].Name)
	}
	if gang.Framework == v1beta1.FrameworkSpark {
		names = append(names, v1beta1.GangRoleMaster)
	}
	return names
}

// Rounds are those of a process whose logs are on Ray nodes of a cluster.
type Rounds struct {
	// All are the rounds, the oldest first.
	All []Round
	// Silent is how many Ray nodes did not answer, and Unasked how many were not asked because of that. They may have further logs.
	Silent, Unasked int
}

// Missing returns which Ray nodes may have further logs, for people. It is empty where all have answered.
func (r Rounds) Missing() string {
	if r.Silent == 0 {
		return ""
	}
	text := fmt.Sprintf("%d Ray nodes do not answer", r.Silent)
	if r.Silent == 1 {
		text = "1 Ray node does not answer"
	}
	if r.Unasked > 0 {
		text += fmt.Sprintf(", and %d more were not asked", r.Unasked)
	}
	return text
}

// ListRounds returns the rounds of a process whose logs are on Ray nodes of a cluster. It is a *Refusal where Ray has no way to them.
func (h *Heads) ListRounds(ctx context.Context, head Head, of Process) (rounds Rounds, err error) {
	err = h.askHead(ctx, head, func(c *Conversation) error {
		rounds, err = c.ListRounds(ctx, of)
		return err
	})
	return rounds, err
}

// ListRounds returns the rounds of a process, as Heads does. With encryption no way to the agent of a node is encrypted, and
// with a token Ray 2.52 does not send it to agents.
func (c *Conversation) ListRounds(ctx context.Context, of Process) (Rounds, error) {
	if isEncrypted(c.pod) {
		return Rounds{}, unreadable("encryption", of, fmt.Sprintf("ComputeCluster %s encrypts its traffic", c.cluster.Name))
	}
	found, err := c.FindLogs(ctx, of.stem()+"*.log*")
	switch {
	case headclient.KindOf(err) == headclient.Unsupported:
		return Rounds{}, unreadable("token", of, headclient.CauseOf(err))
	case err != nil:
		return Rounds{}, err
	}
	return Rounds{All: sortRounds(of.stem(), found.Logs), Silent: found.Silent, Unasked: found.Unasked}, nil
}

// unreadable returns that the log of a process cannot be had, by the kind of the cause.
func unreadable(kind string, of Process, why string) *Refusal {
	found := reason.OutputUnreadable.In(kind).Of("process "+of.Name, why)
	message, remedy := reason.Split(found.Code, found.Text)
	return &Refusal{Sort: Conflict, Code: found.Code, Message: message, Remedy: remedy}
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
