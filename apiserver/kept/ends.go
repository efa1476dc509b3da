package kept

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// IsUnavailable reports whether an error is that archivers do not answer now.
func IsUnavailable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unauthenticated:
		return true
	}
	return false
}

// AttemptOf returns an attempt of a job by its number, and the last one by 0; nil where the record has none.
func (o *Object) AttemptOf(number int32) *v1beta1.JobAttempt {
	if o.Job == nil {
		return nil
	}
	all := o.Job.Status.Attempts
	at := slices.IndexFunc(all, func(one v1beta1.JobAttempt) bool { return one.Number == number })
	if number == 0 {
		at = len(all) - 1
	}
	if at < 0 {
		return nil
	}
	return &all[at]
}

// EndOf returns how an attempt of a job has ended, or that it goes on. A reader that follows waits for the record to say so.
func (k *Kept) EndOf(ctx context.Context, object *Object, attempt int32, follows bool) (logs.End, error) {
	began := k.Clock.Now()
	for {
		if end := logs.EndOf(object.AttemptOf(attempt)); end != nil {
			return *end, nil
		}
		switch {
		case object.Record.GetEnded() > 0:
			return endOfRecord(object.Record), nil
		case !follows:
			return logs.End{Outcome: logs.Running, Code: reason.JobRunning.Code, Message: "this is the output that is kept until now"}, nil
		case k.Clock.Since(began) >= patience:
			return logs.End{Outcome: logs.Broken, Code: reason.OutputGone.Code, Message: "nobody knows how the job ended"}, nil
		}
		if err := k.wait(ctx); err != nil {
			return logs.End{}, err
		}
		its := object.Record
		got, err := k.GetRecord(ctx, &historyv1.GetRecordRequest{NamespaceUid: its.GetNamespaceUid(), Kind: its.GetKind(), Uid: its.GetUid()})
		if err != nil { // what is known stays
			continue
		}
		again, err := ObjectOf(got)
		if err != nil {
			return logs.End{}, err
		}
		object = again
	}
}

// endOfRecord returns how a job has ended whose attempt has no end in its record: it was deleted while it ran.
func endOfRecord(record *historyv1.Record) logs.End {
	outcomes := map[string]logs.Outcome{"Succeeded": logs.Succeeded, "Failed": logs.Failed, "Stopped": logs.Stopped}
	outcome, isKnown := outcomes[record.GetPhase()]
	if !isKnown && record.GetDeleted() > 0 {
		outcome = logs.Stopped
	} else if !isKnown {
		outcome = logs.Broken
	}
	message := record.GetMessage()
	if message == "" || !isKnown {
		message = fmt.Sprintf("ClusterJob %s ended with its deletion", record.GetName())
	}
	return logs.End{Outcome: outcome, Code: record.GetReason(), Message: message}
}
