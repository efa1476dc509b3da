package loadgen

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// stream sends requests that are answered in chunks, each of which has its number.
type stream struct{ plain }

func (s stream) ask(ctx context.Context, number int, due time.Time) reply {
	var said reply
	chunks := int(s.plan.Session / s.plan.Pace)
	path := fmt.Sprintf("/stream?n=%d&pace=%g", chunks, s.plan.Pace.Seconds())
	q := question{method: http.MethodGet, path: path, lasts: s.plan.Session, number: number, due: due}
	said.err = s.exchange(ctx, q, &said, func(response *http.Response) error {
		if !slices.Equal(response.TransferEncoding, []string{"chunked"}) {
			return garbled("it came at once and not in chunks")
		}
		return said.read(bufio.NewScanner(response.Body), row{chunks: chunks, pace: s.plan.Pace}, due)
	})
	return said
}

// row is how many chunks there must be, and how long after one another. The first is sent
// at once.
type row struct {
	chunks int
	pace   time.Duration
}

// read reads a chunk a line, all from the same process, up to the end.
func (r *reply) read(lines *bufio.Scanner, row row, due time.Time) error {
	count := 0
	for ; lines.Scan(); count++ {
		came := since(due)
		if err := r.take(lines.Bytes(), count, row.chunks); err != nil {
			return err
		}
		r.parts, due = append(r.parts, came), came.at.Add(row.pace)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read chunk %d: %w", count, err)
	}
	if count != row.chunks {
		return garbled("it ended well after %d of %d chunks", count, row.chunks)
	}
	return nil
}

// take notes who sent a chunk that must have a number, of so many, and come from where those before came from.
func (r *reply) take(line []byte, number, of int) error {
	var chunk answer
	if err := json.Unmarshal(line, &chunk); err != nil {
		return garbled("%v: %q", err, cut(line))
	}
	if chunk.Chunk != number || chunk.Of != of {
		return garbled("chunk %d of %d came as the %d.", chunk.Chunk, chunk.Of, number)
	}
	if number > 0 && chunk.replica() != r.from.replica() {
		return garbled("chunk %d is from %s, those before from %s", number, chunk.replica(), r.from.replica())
	}
	r.from = chunk
	return nil
}
