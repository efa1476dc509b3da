package reason_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// The severity of each reason, as alerts and scripts lean on it: a change here is a change
// for the people who wrote them.
const (
	fine = "AllReady HeadReady WorkersReady ScalingUp PodsUpToDate NotStalled Settled SuspendedBySpec SuspendedIdle GroupSuspended HeadReplaced Resumed " +
		"Autoscaled SizesHeld Scaled JobSucceeded JobSuspended JobPreempted Stopped JobSubmitted GangPlaced GangRestarted AttemptEnded " +
		"ScheduleActive ScheduleSuspended JobStarted JobReplaced " +
		"StoreServes HeadRestarted HeadRecovered HistoryKept " +
		"ServiceServes ServiceSuspended GatewayProgrammed UpgradeBegan UpgradeDone UpgradeWithdrawn"

	progress = "HeadMissing HeadStarting WorkersStarting RollingOut RollWaiting Resizing Recreating Draining Suspending Queued IdleSoon IdleKept IdleLimitReached " +
		"AutoscalerStarting NeverStarted NodeDraining Retired BudgetLifted SchedulingGated ReadinessGated ImagePulling InitRunning ContainerCreating Preempting " +
		"Scheduling Starting NamespaceTerminating " +
		"Stopping Retrying JobQueued ClusterEnding ClusterStarting JobAPIStarting Submitting JobPending GangQueued GangGathering StorageInUse JobRunning Collecting " +
		"StoreLoading StoreStarting StoreVolumePending StoreChecking HeadRecovering " +
		"ServiceLeaving ServiceDraining UpgradeReturning ServeClusterStarting UpgradeWaiting UpgradePreparing ServeDeploying ServeProving " +
		"UpgradeRouting UpgradeShifting UpgradeBaking UpgradeRecreating UpgradeInPlace ConfigChanging GatewayPending " +
		"TailShort NewestRound PreviousJobActive PreviousJobEnding"
)

func TestSeverities(t *testing.T) {
	for _, entry := range reason.Catalogue() {
		want := reason.Warning
		switch {
		case slices.Contains(strings.Fields(fine), entry.Code):
			want = reason.Fine
		case slices.Contains(strings.Fields(progress), entry.Code):
			want = reason.Progress
		}
		if entry.Severity != want {
			t.Errorf("%s is of severity %d, want %s", entry.Code, entry.Severity, want)
		}
	}
}

// helpless are the warnings that nothing has to be done about: it is done, or was meant.
const helpless = "HeadUnready HeadLost WorkerFailed DeletedIdle NodeLost Evicted"

// advised are reasons that need nothing and still say what one could do.
const advised = "RollWaiting IdleSoon IdleKept SuspendedBySpec SuspendedIdle GroupSuspended SizesHeld JobSuspended Stopped StoreVolumePending ServiceSuspended GatewayPending ScheduleSuspended"

// TestRemedies: who is warned is told what helps, and who is not is left in peace.
func TestRemedies(t *testing.T) {
	for _, entry := range reason.Catalogue() {
		want := entry.Severity == reason.Warning && !slices.Contains(strings.Fields(helpless), entry.Code) ||
			slices.Contains(strings.Fields(advised), entry.Code)
		if has := entry.Remedy != ""; has != want {
			t.Errorf("%s (%s) has the remedy %q, want one: %v", entry.Code, entry.Severity, entry.Remedy, want)
		}
	}
}

func TestSectionsHaveTitles(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, section := range reason.Sections() {
		if seen[section.Title] || len(section.Reasons) == 0 {
			t.Errorf("the section %q is empty, or its title is, or is there twice", section.Title)
		}
		seen[section.Title] = true
	}
}
