package away

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestDecodeEvents_GivesEventsInOrder(t *testing.T) {
	const text = ": beats\n\nid: 4\nevent: data\ndata: {\"data\":\"b25lCg==\"}\n\nevent: later\ndata: 1\n\n" +
		"id: 9\nevent: notice\ndata: {\"message\":\"lost\",\"missing\":{\"offset\":4,\"length\":5,\"reason\":\"NodeLost\"}}\n\n"
	const end = "event: end\ndata: {\"outcome\":\"%s\",\"message\":\"why\"}\n\n"
	for name, c := range map[string]struct {
		text, want string
		isWhole    bool
	}{
		"whole":       {text + fmt.Sprintf(end, "Failed"), "4 one\n|4 |9 lost 5|9 Failed|", true},
		"no end":      {text, "4 one\n|4 |9 lost 5|", false},
		"broken":      {fmt.Sprintf(end, "Broken") + text, "0 Broken|", false},
		"no JSON":     {"event: end\ndata: x\n\n", "", false},
		"cut off":     {"event: end\ndata: {}\n", "", false},
		"a long line": {"data: " + strings.Repeat("x", largestAnswer), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			err := decodeEvents(strings.NewReader(c.text), func(event Event) error {
				fmt.Fprintf(&got, "%d %s", event.Offset, event.Data)
				if event.Notice != nil {
					fmt.Fprintf(&got, "%s %d", event.Notice.Message, event.Notice.Missing.Length)
				}
				if event.End != nil {
					got.WriteString(event.End.Outcome)
				}
				got.WriteString("|")
				return nil
			})
			if got.String() != c.want || (err == nil) != c.isWhole {
				t.Errorf("it gives %q: %v", got.String(), err)
			}
		})
	}
}

func TestReadEvents_EndsWithTheErrorOfItsSink(t *testing.T) {
	full := errors.New("the disk is full")
	sink := func(Event) error { return full }
	if err := decodeEvents(strings.NewReader("data: {}\n\n"), sink); !errors.Is(err, full) {
		t.Errorf("events end with %v", err)
	}
	if err := passOn(strings.NewReader("text"), 0, sink); !errors.Is(err, full) {
		t.Errorf("a text ends with %v", err)
	}
	if err := decodeEvents(strings.NewReader(""), sink); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nothing ends with %v", err)
	}
}

func TestEachPage_EndsWithAServerThatHasNoLastPage(t *testing.T) {
	count := 0
	hasMore, err := EachPage(func(string) (string, error) {
		count++
		return "next", nil
	}, func() bool { return false })
	if !hasMore || err != nil || count != mostPages {
		t.Errorf("after %d pages it ends with %v, %v", count, hasMore, err)
	}
}
