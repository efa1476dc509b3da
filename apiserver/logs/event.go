package logs

// Event is a part of an output, or what is said about it. One of Data, Notice and End is set, and the last one of a read
// is an end.
type Event struct {
	// Offset is where the output goes on after this event. Lines that a status kept have no place in the output, so the
	// offset stays where it was.
	Offset int64
	// Data is valid until the sink returns.
	Data   []byte
	Notice *Notice
	End    *End
}

// Notice says that something is different from what was asked for.
type Notice struct {
	// Code is one of the catalogue.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Round is that of the log that follows, where the caller gave none.
	Round int32 `json:"round,omitempty"`
	// Missing is a range of a file that nobody has: the output goes on behind it.
	Missing *Missing `json:"missing,omitempty"`
}

// Missing is a range of a file that nobody has.
type Missing struct {
	Offset int64 `json:"offset"`
	// Length is 0 where the end is not known.
	Length int64  `json:"length"`
	Reason string `json:"reason"`
}

// Outcome is how a read ended.
type Outcome string

// The outcomes. The first three are of a job that is over.
const (
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
	Stopped   Outcome = "Stopped"
	// Pending and Running: the job goes on, and its output was not to be followed.
	Pending Outcome = "Pending"
	Running Outcome = "Running"
	// Broken: the output could not be read to its end, and how the job ended is not known.
	Broken Outcome = "Broken"
)

// End says why no more output comes.
type End struct {
	Outcome Outcome `json:"outcome"`
	// ExitCode is that of the driver, where it ended by itself: 128 and the signal where a signal ended it.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Code is one of the catalogue.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Remedy is what helps; it may be empty.
	Remedy string `json:"remedy,omitempty"`
}

// Sink takes events, one after the other. A sink that takes its time delays nobody else. Its error ends the read.
type Sink func(Event) error
