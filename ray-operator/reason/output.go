package reason

// Refusals and notices for clients that read the output of a job, or ask for a job in Ray.
var (
	OutputGone = Reason{
		"OutputGone", Warning, "The output of a job, or the rest of it, was lost with its head or its node, or its file was removed.",
		"the output of %s is no longer available: %s",
		"Write output that must last to your own storage", nil,
	}
	OutputUnreadable = Reason{
		"OutputUnreadable", Warning, "Ray does not return the raw output: on a cluster with a token, Ray 2.52 returns text only. Or the cluster encrypts its traffic, and the log of a process is on a Ray node.",
		"the output of %s cannot be read: %s",
		"Use a later Ray, which returns raw bytes",
		[]Case{
			{"encryption", "Read the output of the job, and set gang.output to All in a new job to have all processes there"},
			{"token", "Use a later Ray, or set gang.output to All in a new job and read the output of the job"},
		},
	}
	OutputShorter = Reason{
		"OutputShorter", Warning, "The output ends before the requested offset.",
		"the output of %s has %d bytes, and byte %d was requested",
		"Read from offset 0", nil,
	}
	OutputNotKept = Reason{
		"OutputNotKept", Warning, "The server could not store an output for its readers.",
		"the server cannot store the output of %s: %s",
		"Check the server's disk; read again from the last offset", nil,
	}
	OutputsCrowded = Reason{
		"OutputsCrowded", Warning, "The server stores as many outputs as it has room for.",
		"%d outputs are being read, as many as the server has room for",
		"Read again later, or stop another reader", nil,
	}
	ReaderBehind = Reason{
		"ReaderBehind", Warning, "A reader was so slow that others would have had to wait for it.",
		"the reader fell behind byte %d of the output of %s, and the server has no room to keep more",
		"Read again from the last offset", nil,
	}
	TailShort = Reason{
		"TailShort", Progress, "The server stores fewer lines of an output than requested.",
		"fewer than %d lines are returned: the server stores no output before byte %d", "", nil,
	}
	NewestRound = Reason{
		"NewestRound", Progress, "The log of a process of a gang was requested without a round, so that the newest one is returned.",
		"this is round %d of %s: %s", "", nil,
	}
	SubmissionMissing = Reason{
		"SubmissionMissing", Warning, "Ray has no job with the requested name.",
		"Ray on ComputeCluster %s has no job %s",
		"List the submissions of the cluster", nil,
	}
)

func outputs() Section {
	return Section{"Output of a job", []Reason{
		OutputGone, OutputUnreadable, OutputShorter, OutputNotKept, OutputsCrowded, ReaderBehind, SubmissionMissing, TailShort, NewestRound,
	}}
}
