package reason

// What those are told who read the output of a job, or ask for a job that Ray has.
var (
	OutputGone = Reason{
		"OutputGone", Warning, "The output of a job, or the rest of it, went with its head or its node, or its file was removed.",
		"the output of job %s is not there any more: %s",
		"Write what must last to storage of your own", nil,
	}
	OutputUnreadable = Reason{
		"OutputUnreadable", Warning, "Ray does not give the output as it is. Ray 2.52 gives a cluster with a token text alone.",
		"the output of job %s cannot be read: %s",
		"Use a later Ray, which gives any bytes", nil,
	}
	OutputShorter = Reason{
		"OutputShorter", Warning, "The output ends before the offset that was asked for.",
		"the output of job %s has %d bytes, and byte %d was asked for",
		"Read from offset 0", nil,
	}
	OutputNotKept = Reason{
		"OutputNotKept", Warning, "The server could not write what it keeps of an output for its readers.",
		"the server cannot keep the output of job %s: %s",
		"See the server's disk; read again from the last offset", nil,
	}
	OutputsCrowded = Reason{
		"OutputsCrowded", Warning, "The server keeps as many outputs as it has room for.",
		"%d outputs are being read, as many as the server has room for",
		"Read again in a moment, or end another reader", nil,
	}
	ReaderBehind = Reason{
		"ReaderBehind", Warning, "A reader was so slow that others would have had to wait for it.",
		"the reader fell behind byte %d of the output of job %s, and the server has no room to keep more",
		"Read again from the last offset", nil,
	}
	TailShort = Reason{
		"TailShort", Progress, "The server keeps fewer lines of an output than were asked for.",
		"fewer than %d lines are given: the server keeps nothing of the output before byte %d", "", nil,
	}
	SubmissionMissing = Reason{
		"SubmissionMissing", Warning, "Ray has no job under the name that was asked for.",
		"Ray on ComputeCluster %s has no job %s",
		"List the submissions of the cluster", nil,
	}
)

func outputs() Section {
	return Section{"What readers of an output are told", []Reason{
		OutputGone, OutputUnreadable, OutputShorter, OutputNotKept, OutputsCrowded, ReaderBehind, SubmissionMissing, TailShort,
	}}
}
