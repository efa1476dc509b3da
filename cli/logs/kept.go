package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// printKept prints what the status keeps of the output of an attempt that is over, where the head does not have it, and
// where a part was printed, what follows it.
func (o *Output) printKept(ctx context.Context, job *v1beta1.ClusterJob, attempt v1beta1.JobAttempt, out *counter, why error) error {
	for look := 0; attempt.LogState == "" && o.IsFollowed && look < linesLooks; look++ { // the operator is reading them
		if err := pause(ctx, o.Clusters.Console, console.Look); err != nil {
			return err
		}
		o.refresh(ctx, job, &attempt)
	}
	rest, isJoined := restOf(string(out.tail), attempt.LastLines)
	hasAll := isJoined || attempt.LogState == v1beta1.LogComplete
	before := out.count
	switch {
	case out.count > 0 && attempt.LogState == v1beta1.LogLost:
		return fmt.Errorf("read the rest of the output of job/%s: %w", job.Name, kube.Because(why))
	case attempt.LogState == "":
		o.Clusters.Console.Note("the head is gone: %v; the rest of the output was not read before", said(why))
	case out.count == 0:
		o.Clusters.Console.Note("the head does not have the output: %v; these are the last lines that are kept", said(why))
	case !isJoined:
		o.Clusters.Console.Note("the head is gone: %v; lines may be missing before the last ones, which are kept", said(why))
	}
	if _, err := io.WriteString(out, rest); err != nil {
		return fmt.Errorf("print the last lines: %w", err)
	}
	if out.count > before && !hasAll {
		o.sayRest(job, attempt)
	}
	return nil
}

// sayRest says how to read an output of which only the last lines are here, where no server was asked.
func (o *Output) sayRest(job *v1beta1.ClusterJob, attempt v1beta1.JobAttempt) {
	if _, isServer := o.heads.(*away.Server); !isServer {
		o.Clusters.Console.Note("if history is kept, the whole output is there: %s --server URL",
			console.Again(job.Namespace, "logs job/%s --attempt %d", job.Name, attempt.Number))
	}
}

// restOf returns what of the kept last lines follows after what was printed, and reports whether nothing is missing between
// the two. Printed is the end of the output so far, and may end within a line. Where the two fit together in more than one
// way, or by the beginning of a line alone, nobody knows.
func restOf(printed string, kept []string) (rest string, isJoined bool) {
	if len(kept) == 0 {
		return "", true
	}
	lines := strings.Split(printed, "\n")
	begun := lines[len(lines)-1] // empty after a whole line
	lines = lines[:len(lines)-1]
	var found []string
	for count := range min(len(kept), len(lines)) + 1 {
		isFitting := count > 0 || begun != "" && begun == kept[0]
		if isFitting && slices.Equal(lines[len(lines)-count:], kept[:count]) {
			if rest, is := restAfter(begun, kept[count:]); is {
				found = append(found, rest)
			}
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	if begun != "" {
		rest = "\n"
	}
	return rest + strings.Join(kept, "\n") + "\n", false
}

// restAfter returns what follows after the beginning of a line, and reports whether the lines begin with that.
func restAfter(begun string, lines []string) (string, bool) {
	switch {
	case len(lines) == 0:
		return "", begun == ""
	case len(lines) == 1 && begun == lines[0]: // the last line has no end
		return "", true
	default:
		return strings.TrimPrefix(lines[0], begun) + joinLines(lines[1:]), strings.HasPrefix(lines[0], begun)
	}
}

// joinLines returns an end of a line and the lines that follow, each with its end.
func joinLines(lines []string) string {
	return "\n" + strings.Join(append(slices.Clone(lines), ""), "\n")
}

// said is a failure in words for people.
func said(err error) string {
	var unavailable *heads.Unavailable
	if errors.As(err, &unavailable) {
		return unavailable.Message
	}
	return headclient.CauseOf(err)
}

// linesLooks is how often to look for last lines that the operator has not written into the status yet.
const linesLooks = 15

// largestTail is how much of the end of an output is remembered: as much as the last lines of a status may have.
const largestTail = 64 << 10

// counter counts what was printed, so that an output goes on where it was, and remembers its end.
type counter struct {
	out   io.Writer
	count int64
	// skipped is how many bytes of the output nobody has: they were not printed.
	skipped int64
	tail    []byte
	err     error
}

// offset returns where the output goes on.
func (c *counter) offset() int64 { return c.count + c.skipped }

// Write implements io.Writer.
func (c *counter) Write(part []byte) (int, error) {
	count, err := c.out.Write(part)
	c.count += int64(count)
	c.tail = append(c.tail, part[:count]...)
	if over := len(c.tail) - largestTail; over > largestTail {
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	if err != nil {
		c.err = err
	}
	return count, err
}
