package kept

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Round is a round of a process of a gang whose log is kept.
type Round struct {
	Number   int32
	HasOlder bool
}

// ProcessFile returns the file of the log of a process.
func ProcessFile(submission string, of Log) string {
	name := stem(submission) + strings.ReplaceAll(of.Process, "/", "-") + "-r" + strconv.Itoa(int(of.Round)) + ".log"
	if of.IsOlder {
		name += ".1"
	}
	return name
}

// Rounds returns the rounds of a process of a gang whose logs are kept, the oldest first.
func (k *Kept) Rounds(ctx context.Context, object *Object, attempt *v1beta1.JobAttempt, process string) ([]Round, error) {
	begin := stem(attempt.SubmissionID) + strings.ReplaceAll(process, "/", "-") + "-r"
	files, _, err := k.find(ctx, object.Record.GetNamespaceUid(), string(attempt.ClusterUID), begin+"*")
	if err != nil {
		return nil, err
	}
	var rounds []Round
	for _, file := range files {
		of, is := LogOf(attempt.SubmissionID, string(file.GetPath()))
		if !is || of.Process != process {
			continue
		}
		at := slices.IndexFunc(rounds, func(one Round) bool { return one.Number == of.Round })
		if at < 0 {
			at = len(rounds)
			rounds = append(rounds, Round{Number: of.Round})
		}
		rounds[at].HasOlder = rounds[at].HasOlder || of.IsOlder
	}
	slices.SortFunc(rounds, func(a, b Round) int { return cmp.Compare(a.Number, b.Number) })
	return rounds, nil
}
