package logs

import (
	"encoding/json"
	"fmt"
)

// bytesFrame holds bytes, which JSON has in base64: a line could not hold an end of a line, nor what is no UTF-8.
type bytesFrame struct {
	Data []byte `json:"data"`
}

// EncodeSSE returns an event as server-sent events have it. Its ID is the offset where the output goes on, so that who
// connects again with Last-Event-ID misses nothing.
func EncodeSSE(e Event) []byte {
	name, content := "data", any(bytesFrame{e.Data})
	switch {
	case e.Notice != nil:
		name, content = "notice", e.Notice
	case e.End != nil:
		name, content = "end", e.End
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err) // it is made of texts, numbers and bytes
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.Offset, name, encoded)
}
