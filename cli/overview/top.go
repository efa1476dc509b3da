package overview

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func top(c *console.Console) *cobra.Command {
	chosen := NewChoice(c)
	var isIdle, hasEnded bool
	command := &cobra.Command{
		Use:   "top [KIND,…]",
		Short: "List clusters, jobs, services and schedules, with reasons and GPUs",
		Long: `List clusters, jobs, services and schedules: phase, reason, age, idle time of a cluster, GPUs and owner.

GPUs are those of a cluster's desired pods. Only clusters have GPUs, so sums are right. OWNER is the owner that the object
names, or the job or service that a cluster belongs to. An idle cluster whose idle policy is paused has the reason IdleKept;
-o wide shows the time and the user.`,
		Example: `  heliostat top
  heliostat top -A --idle
  heliostat top -w
  heliostat top jobs -l team=a -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := readKinds(args)
			if err != nil {
				return err
			}
			look := func() ([]verbs.Object, error) {
				all, err := chosen.Objects(cmd.Context(), kinds...)
				all = slices.DeleteFunc(all, func(object verbs.Object) bool {
					return isIdle && idleSince(object).IsZero() || !hasEnded && isOver(object)
				})
				if isIdle {
					slices.SortStableFunc(all, func(a, b verbs.Object) int { return idleSince(a).Compare(idleSince(b)) })
				}
				return all, err
			}
			return chosen.Show(cmd.Context(), look, func(all []verbs.Object) error { return chosen.printTop(all, c.Clock.Now()) })
		},
	}
	command.Flags().BoolVar(&isIdle, "idle", false, "list only idle clusters, longest idle first")
	command.Flags().BoolVar(&hasEnded, "ended", false, "also list ended jobs")
	chosen.Add(command)
	chosen.AddWatch(command)
	return command
}

func (c *Choice) printTop(all []verbs.Object, now time.Time) error {
	return c.Print(all, "such objects", output.Columns("NAME", "PHASE", "WHY", "AGE", "IDLE", "GPUS", "OWNER", "message"),
		func(object verbs.Object) []string { return topRow(object, now) })
}

// topRow is one object: name, phase, why, age, since when it is idle, GPUs, owner, and why in words.
func topRow(object verbs.Object, now time.Time) []string {
	code, message := whyOf(object)
	return []string{targetOf(object), Phase(object), code, ago(now, object.GetCreationTimestamp().Time),
		ago(now, idleSince(object)), GPUs(object), ownerOf(object), message}
}

// whyOf returns what an object says first, as a code and in words: of a ready cluster that is kept, until when and at whose
// request.
func whyOf(object verbs.Object) (code, message string) {
	if cluster, is := object.(*v1beta1.ComputeCluster); is && explain.Ready(cluster) == string(metav1.ConditionTrue) {
		idle := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionSuspended)
		if idle != nil && idle.Reason == reason.IdleKept.Code {
			return idle.Reason, idle.Message
		}
	}
	headline := explain.Headline(object)
	return headline.Code, headline.Message
}

// Phase returns the phase of an object in one word.
func Phase(object verbs.Object) string {
	if object.GetDeletionTimestamp() != nil {
		return v1beta1.PhaseDeleting
	}
	phase := ""
	switch object := object.(type) {
	case *v1beta1.ComputeCluster:
		phase = object.Status.Phase
	case *v1beta1.ClusterJob:
		phase = object.Status.Phase
	case *v1beta1.ClusterService:
		phase = object.Status.Phase
	case *v1beta1.ClusterJobSchedule:
		phase = explain.PhaseOfSchedule(object)
	}
	if phase == "" {
		return v1beta1.PhasePending
	}
	return phase
}

func idleSince(object verbs.Object) time.Time {
	if cluster, is := object.(*v1beta1.ComputeCluster); is {
		return explain.IdleSince(cluster.Status.Conditions)
	}
	return time.Time{}
}

// GPUs returns how many the pods of a cluster ask for, and nothing of other objects. A cluster without pods takes none,
// whatever it would take.
func GPUs(object verbs.Object) string {
	cluster, is := object.(*v1beta1.ComputeCluster)
	if !is {
		return ""
	}
	sum := int64(0)
	for name, quantity := range cluster.Status.Resources {
		if v1beta1.IsGPU(name) {
			sum += quantity.Value()
		}
	}
	return strconv.FormatInt(sum, 10)
}

// ownerOf is who an object says owns it, or else the job or service that a cluster was made for.
func ownerOf(object verbs.Object) string {
	if owner := object.GetAnnotations()[v1beta1.AnnotationOwner]; owner != "" {
		return owner
	}
	by := metav1.GetControllerOf(object)
	switch {
	case by == nil:
		return ""
	case by.Kind == explain.KindJob:
		return "job/" + by.Name
	case by.Kind == explain.KindService:
		return "service/" + by.Name
	case by.Kind == explain.KindSchedule:
		return "schedule/" + by.Name
	}
	return by.Kind + "/" + by.Name
}

// isOver reports whether an object is a job that has ended.
func isOver(object verbs.Object) bool {
	job, is := object.(*v1beta1.ClusterJob)
	return is && job.Status.EndTime != nil
}
