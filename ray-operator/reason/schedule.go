package reason

// States and events of schedules.
var (
	ScheduleUnreadable = Reason{
		"ScheduleUnreadable", Warning, "The schedule has the form of cron, and still means nothing, such as a range that falls.",
		"the schedule %s cannot be read: %s",
		"Correct spec.schedule", nil,
	}
	ScheduleNeverComes = Reason{
		"ScheduleNeverComes", Warning, "No time of the schedule comes within five years, such as on February 30.",
		"the schedule %s never comes",
		"Correct spec.schedule", nil,
	}
	TimeZoneUnknown = Reason{
		"TimeZoneUnknown", Warning, "The IANA database of the operator does not have the time zone.",
		"there is no time zone %s",
		"Correct spec.timeZone, such as Europe/Berlin", nil,
	}
	StartMissed = Reason{
		"StartMissed", Warning, "No job was started for a time of the schedule within startingDeadlineSeconds.",
		"no job was started for %s within startingDeadlineSeconds, %d s",
		"Raise it, or check what the schedule waited for: an earlier job, or the operator", nil,
	}
	PreviousJobActive = Reason{
		"PreviousJobActive", Progress, "A time of the schedule has come, and concurrencyPolicy Forbid waits for the end of an earlier job.",
		"the job for %s waits for the end of %s", "", nil,
	}
	PreviousJobEnding = Reason{
		"PreviousJobEnding", Progress, "A time of the schedule has come, and concurrencyPolicy Replace deletes an earlier job first.",
		"the job for %s starts when %s is gone", "", nil,
	}
	ScheduleActive    = Reason{"ScheduleActive", Fine, "Jobs start at the times of the schedule.", "jobs start at the times of the schedule", "", nil}
	ScheduleSuspended = Reason{
		"ScheduleSuspended", Fine, "The schedule is suspended by its spec.",
		"suspended by spec.suspend", "Set it to false to start jobs at the times that follow", nil,
	}
	JobStarted  = Reason{"JobStarted", Fine, "A job was created for a time of the schedule.", "ClusterJob %s was created for %s", "", nil}
	JobReplaced = Reason{"JobReplaced", Fine, "A job was deleted in favour of the next one.", "ClusterJob %s was deleted in favour of that for %s", "", nil}
)

func schedules() Section {
	return Section{"States and events of schedules", []Reason{
		ScheduleUnreadable, ScheduleNeverComes, TimeZoneUnknown, StartMissed, PreviousJobActive, PreviousJobEnding,
		ScheduleActive, ScheduleSuspended, JobStarted, JobReplaced,
	}}
}
