package hostile

import (
	"bytes"
	"compress/gzip"
	"strings"
	"sync"
)

// Web is what the job and Serve API of a hostile head says.
var Web = sync.OnceValue(func() []Manner {
	const ok = "HTTP/1.1 200 OK\r\n"
	return []Manner{
		endless(ok+"\r\n", " "),
		endless(ok+"\r\n[", `{"a":`),
		endless(ok+"\r\n{\"applications\": {", `"a": {"status": "RUNNING", "deployments": {}},`),
		endless(ok+"\r\n[", `{"submission_id": "a", "status": "RUNNING"},`),
		endless(ok, "A: b\r\n"),
		endless(ok+"A: ", "b"),
		endless("", "HTTP/1.1 100 Continue\r\n\r\n"),
		endless("HTTP/1.1 500 X\r\n\r\n", "Traceback \x1b[31m\n"),
		say(ok + "Content-Encoding: gzip\r\n\r\n" + bomb()),
		say(ok + "Content-Length: 100\r\n\r\n{"),
		say(ok + "Transfer-Encoding: chunked\r\n\r\nxx\r\n{"),
		say(ok + "\r\n" + `{"submission_id": "a", "status": "RUNNING", "status": "FAILED", "driver_exit_code": 1e99, "message": null}`),
		say("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"),
		say("SSH-2.0-OpenSSH_9.2\r\n"),
		drip(ok + "Content-Length: 1000\r\n\r\n"),
		silent,
	}
})

// bomb is 64 MiB of JSON in few bytes.
func bomb() string {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte(`"` + strings.Repeat("a", longest) + `"`)) // memory refuses nothing
	_ = zip.Close()
	return out.String()
}
