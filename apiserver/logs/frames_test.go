package logs

import (
	"strings"
	"testing"
)

func TestEncodeSSE_MakesOneFrame(t *testing.T) {
	for want, event := range map[string]Event{
		`id: 12|event: data|data: {"data":"YQo="}||`:                {Offset: 12, Data: []byte("a\n")},
		`id: 1099511627776|event: data|data: {"data":"DQoK//4A"}||`: {Offset: 1 << 40, Data: []byte("\r\n\n\xff\xfe\x00")},
		`id: 7|event: notice|data: {"code":"OutputGone","message":"two\nlines \u2028 \r and \"quotes\""}||`: {
			Offset: 7, Notice: &Notice{Code: "OutputGone", Message: "two\nlines \u2028 \r and \"quotes\""}},
		`id: 7|event: end|data: {"outcome":"Failed","exitCode":0,"code":"JobFailed","message":"x\n\n","remedy":"y"}||`: {
			Offset: 7, End: &End{Outcome: Failed, ExitCode: exit(0), Code: "JobFailed", Message: "x\n\n", Remedy: "y"}},
		`id: 7|event: end|data: {"outcome":"Running","code":"JobRunning","message":"x"}||`: {
			Offset: 7, End: &End{Outcome: Running, Code: "JobRunning", Message: "x"}},
	} {
		if got := strings.ReplaceAll(string(EncodeSSE(event)), "\n", "|"); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}
