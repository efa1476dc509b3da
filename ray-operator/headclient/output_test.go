package headclient

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLinesAreFitToBeShown(t *testing.T) {
	for said, want := range map[string]string{
		"plain":                     "plain",
		"a\tb":                      "a b",
		"\x1b[1;31mred\x1b[0m":      "red",
		"\x1b[38:2:1:2:3mred\x1b[K": "red",
		"\x1b]0;title\x07shown":     "shown",
		"\x1b]8;;https://a\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bP+q\x1b\\shown":                        "shown",
		"\x1b(Bshown\x1b7\x1bc":                     "shown",
		"\u009b31mred \u009d0;t\u009cshown":         "red shown",
		"never ended \x1b]0;title":                  "never ended ",
		"at the end \x1b[31":                        "at the end ",
		"at the end \x1b":                           "at the end ",
		"bell\x07 back\b null\x00 del\x7f":          "bell back null del",
		"broken \xff\xfe UTF-8":                     "broken \uFFFD UTF-8",
		"grün 漢字 🌞 \u00a0é":                         "grün 漢字 🌞 \u00a0é",
		"turned \u202eround\u2066 \u200b\ufeff":     "turned round ",
		"two\u2028lines\u2029":                      "twolines",
	} {
		if got := clean(said); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

// tailed is what is kept of a text that comes in parts of some size.
func tailed(said string, want, size int, token string) Tail {
	end := &tailing{want: want}
	for part := range slices.Chunk([]byte(said), size) {
		_, _ = end.Write(part)
	}
	return end.tail(want, nil, token)
}

func TestTheEndOfAnOutput(t *testing.T) {
	long := strings.Repeat("é", 600)
	many := strings.Repeat(strings.Repeat("x", 1000)+"\n", 9)
	for name, c := range map[string]struct {
		said string
		want int
		tail Tail
	}{
		"nothing":                     {"", 3, Tail{}},
		"less than is wanted":         {"a\nb\n", 3, Tail{Lines: []string{"a", "b"}}},
		"more than is wanted":         {"a\nb\nc\nd\n", 3, Tail{Lines: []string{"b", "c", "d"}}},
		"a line that goes on":         {"a\nb", 3, Tail{Lines: []string{"a", "b"}}},
		"lines of nothing":            {"a\n\n\n", 2, Tail{Lines: []string{"", ""}}},
		"ends of lines as of Windows": {"a\r\nb\r\n", 3, Tail{Lines: []string{"a", "b"}}},
		"a progress bar":              {"begin\n 1%\r 50%\r100%\nend\n", 3, Tail{Lines: []string{"begin", "100%", "end"}}},
		"one that returned last":      {"1%\r50%\r", 3, Tail{Lines: []string{"50%"}}},
		"colours":                     {"\x1b[32mgreen\x1b[0m\n", 3, Tail{Lines: []string{"green"}}},
		"the token":                   {"RAY_AUTH_TOKEN=secret-token\n", 3, Tail{Lines: []string{"RAY_AUTH_TOKEN=[token]"}}},
		"a coloured token":            {"secret\x1b[0m-token\n", 3, Tail{Lines: []string{"[token]"}}},
		"a token where it is cut":     {strings.Repeat("x", 1020) + "secret-token", 3, Tail{Lines: []string{strings.Repeat("x", 1020) + "[tok"}, Truncated: true}},
		"a long line":                 {long + "\nb\n", 3, Tail{Lines: []string{long[:1024], "b"}, Truncated: true}},
		"a long line that is gone":    {long + "\nb\n", 1, Tail{Lines: []string{"b"}}},
		"more than there is room for": {many, 9, Tail{Lines: strings.Split(strings.TrimSpace(many), "\n")[:8], Truncated: true}},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			if diff := cmp.Diff(c.tail, tailed(c.said, c.want, size, "secret-token")); diff != "" {
				t.Errorf("%s, in parts of %d: %s", name, size, diff)
			}
		}
	}
}

// TestOutputOfGigabytes is kept in little memory, and what was lost long ago is not missed.
func TestOutputOfGigabytes(t *testing.T) {
	end := &tailing{want: 1000}
	wide := []byte(strings.Repeat("x", 100<<10) + "\n")
	for range 1000 {
		_, _ = end.Write(wide)
	}
	if len(end.lines) > 32 || cap(end.line) > 4*maxRaw || end.kept > maxKept {
		t.Errorf("%d lines of %d bytes are kept, and a line of %d", len(end.lines), end.kept, cap(end.line))
	}
	for i := range 1000 {
		_, _ = fmt.Fprintln(end, i)
	}
	if tail := end.tail(20, nil, ""); tail.Truncated || len(tail.Lines) != 20 || tail.Lines[19] != "999" {
		t.Errorf("%+v", tail)
	}
}

func TestRaysOwnLineIsLeftOut(t *testing.T) {
	job := Job{ID: "a", Entrypoint: "python -c '\nprint(1)\r\n'"}
	const banner = "Running entrypoint for job a: python -c '\nprint(1)\r\n'\n"
	for said, want := range map[string][]string{
		banner + "1\n2\n":          {"1", "2"},
		"1\n" + banner + "2\n":     {"1", "2"},
		"1\n2\n" + banner:          {"1", "2"},
		"0\n1\n2\n" + banner:       {"1", "2"},
		"1\n2\n":                   {"1", "2"},
		"print(1)\n'\n":            {"print(1)", "'"},
		banner + banner:            {"print(1)", "'"}, // the program's own
		"Running entrypoint for\n": {"Running entrypoint for"},
	} {
		without := announced(job)
		end := &tailing{want: 2 + len(without)}
		_, _ = end.Write([]byte(said))
		if tail := end.tail(2, without, ""); !slices.Equal(tail.Lines, want) || tail.Truncated {
			t.Errorf("%q ends with %+v, want %q", said, tail, want)
		}
	}
	if lines := announced(Job{ID: "a", Entrypoint: strings.Repeat("\n", 2000)}); lines != nil {
		t.Errorf("%d lines are looked for", len(lines))
	}
}

func TestMessagesKeepTheirEnd(t *testing.T) {
	many := strings.Repeat(strings.Repeat("é", 50)+"\n", 100) + "the cause\n"
	got := ending(many, "")
	if len(got) > maxMessage || len(got) < maxMessage-101 || !strings.HasPrefix(got, "é") || !strings.HasSuffix(got, "\nthe cause") {
		t.Errorf("%d bytes from %q to %q", len(got), got[:10], got[len(got)-10:])
	}
	for said, want := range map[string]string{
		"":                           "",
		"one":                        "one",
		"a\r\nb\n\n":                 "a\nb",
		"\x1b[31ma\x1b[0m\n10%\r20%": "a\n20%",
		"a\n\nsecret-token":          "a\n\n[token]",
		strings.Repeat("x", 5000):    strings.Repeat("x", maxLine),
	} {
		if got := ending(said, "secret-token"); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

// unquoted is what is passed on of an object that comes in parts of some size.
func unquoted(object string, size int) string { return unquotedBy(&quoted{}, object, size) }

func unquotedBy(q *quoted, object string, size int) string {
	var text strings.Builder
	q.into = &text
	for part := range slices.Chunk([]byte(object), size) {
		_, _ = q.Write(part)
	}
	return text.String()
}

func TestLogsAreReadFromJSON(t *testing.T) {
	for object, want := range map[string]string{
		`{"logs": ""}`:                            "",
		`{"logs": "a\nb\r\t\"\\\/\b\f"}`:          "a\nb\r\t\"\\/  ",
		`{"logs": "gr\u00fcn \ud83c\udf1e"}`:      "grün 🌞",
		`{"logs": "\ud83cx \udf1e \ud83c\ud83c"}`: "�x � �",
		`{"logs": "a\u00`:                         "a",
		`{"logs": "a\u00zz"}`:                     "a�",
		`{"log\"s": "a"}`:                         "a",
		`{"logs": "a", "more": "b"}`:              "a",
		`["logs"]`:                                "",
	} {
		for _, size := range []int{1, 3, 1 << 20} {
			if got := unquoted(object, size); got != want {
				t.Errorf("%s, in parts of %d, says %q, want %q", object, size, got, want)
			}
		}
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31mc\n\n50%\r100%"), byte(3), byte(2))
	f.Add([]byte("\x1b]0;never ended\n\u009bm\xff"), byte(1), byte(1))
	f.Add([]byte(strings.Repeat("x", 3000)+"\r"+strings.Repeat("é", 3000)), byte(9), byte(255))
	f.Fuzz(func(t *testing.T, said []byte, want, size byte) {
		lines, parts := int(want)+1, int(size)+1
		tail := tailed(string(said), lines, parts, "")
		total := 0
		for _, line := range tail.Lines {
			checkText(t, line, maxLine)
			total += len(line)
		}
		if len(tail.Lines) > lines || total > maxLines {
			t.Errorf("%d lines of %d bytes", len(tail.Lines), total)
		}
		if diff := cmp.Diff(tail, tailed(string(said), lines, len(said)+1, "")); diff != "" {
			t.Errorf("in parts of %d it is another: %s", parts, diff)
		}
	})
}

func checkText(t *testing.T, line string, limit int) {
	t.Helper()
	if len(line) > limit || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
		t.Errorf("%q is not fit to be shown", line)
	}
}

// FuzzLogs holds the reading of JSON in parts to the reading of JSON.
func FuzzLogs(f *testing.F) {
	f.Add("a\nb\"\\ü🌞", byte(1))
	f.Add("\b\f\x00\x1b[31m\r\n", byte(2))
	f.Fuzz(func(t *testing.T, text string, size byte) {
		object, err := json.Marshal(map[string]string{"logs": text})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(object, &back); err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("\b", " ", "\f", " ").Replace(back["logs"])
		if got := unquoted(string(object), int(size)+1); got != want {
			t.Errorf("%s says %q, want %q", object, got, want)
		}
		if got := unquotedBy(&quoted{isExact: true}, string(object), int(size)+1); got != back["logs"] {
			t.Errorf("%s says exactly %q, want %q", object, got, back["logs"])
		}
		unquoted(text, int(size)+1) // nor does anything else panic
	})
}

// details is what Ray 2.60 says of a job.
const details = `{"type": "SUBMISSION", "job_id": null, "submission_id": "a1", "driver_info": null, "status": "FAILED",
	"entrypoint": "exit 3", "message": "Job entrypoint command failed with exit code 3\nhi\n", "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR",
	"start_time": 1795286134064, "end_time": 1795286136847, "metadata": {"k": "v"}, "runtime_env": {"env_vars": {"A": "b"}},
	"driver_agent_http_address": "http://10.0.0.1:52365", "driver_node_id": "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907",
	"driver_exit_code": 3}`

func TestDetailsOfAJob(t *testing.T) {
	job, node, err := readJob([]byte(details), "a1", "")
	if err != nil {
		t.Fatal(err)
	}
	three := int32(3)
	want := Job{
		ID: "a1", Status: JobFailed, Entrypoint: "exit 3", Metadata: map[string]string{"k": "v"}, ExitCode: &three,
		Message: "Job entrypoint command failed with exit code 3\nhi", ErrorType: "JOB_ENTRYPOINT_COMMAND_ERROR",
		Start: time.UnixMilli(1795286134064), End: time.UnixMilli(1795286136847),
	}
	if diff := cmp.Diff(want, job); diff != "" || node.String() != "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907" {
		t.Errorf("node %s: %s", node, diff)
	}
	for was, becomes := range map[string]string{
		`"FAILED"`:                       `"PAUSED"`, // a status that this program has never heard of
		`"JOB_ENTRYPOINT_COMMAND_ERROR"`: `"NEW\u001b[31m_ERROR"`,
		`"type": "SUBMISSION",`:          `"type": "SUBMISSION", "new": [{"a": {}}],`,
		`"driver_exit_code": 3`:          `"driver_exit_code": -9`,
		`{"k": "v"}`:                     `null`,
	} {
		if _, _, err := readJob([]byte(strings.Replace(details, was, becomes, 1)), "a1", ""); err != nil {
			t.Errorf("%s: %v", becomes, err)
		}
	}
}

func TestDetailsThatCannotBe(t *testing.T) {
	for was, becomes := range map[string]string{
		`"submission_id": "a1"`:    `"submission_id": "a2"`,
		`"submission_id": "a1",`:   ``,
		`"FAILED"`:                 `""`,
		`"status": "FAILED",`:      `"Status": "FAILED",`,
		`"error_type"`:             `"status": "RUNNING", "error_type"`,
		`{"k": "v"}`:               `{"k": 1}`,
		`"exit 3"`:                 `7`,
		`1795286134064`:            `-1`,
		`1795286136847`:            `1e30`,
		`"driver_exit_code": 3`:    `"driver_exit_code": 4294967296`,
		`"b8e2`:                    `"zzzz`,
		`"FAILED", `:               `"FAI\nLED", `,
		`{"type"`:                  `[{"type"`,
		`"driver_exit_code": 3}`:   `"driver_exit_code": 3} {}`,
		`{"env_vars": {"A": "b"}}`: strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	} {
		if !strings.Contains(details, was) && was != `"FAILED", ` {
			t.Fatalf("%s is not there to be replaced", was)
		}
		changed := strings.Replace(strings.Replace(details, `"FAILED",`, `"FAILED", `, 1), was, becomes, 1)
		if job, _, err := readJob([]byte(changed), "a1", ""); err == nil {
			t.Errorf("%.100s: %+v", becomes, job)
		}
	}
}

func FuzzJob(f *testing.F) {
	f.Add([]byte(details))
	f.Add([]byte(strings.ReplaceAll(details, "FAILED", "\x1b[31mNEW")))
	f.Add([]byte(`{"submission_id": "a1", "status": "PENDING", "message": "\ud800", "status": "RUNNING"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		job, _, err := readJob(body, "a1", "")
		if err != nil {
			return
		}
		if job.ID != "a1" || job.Status == "" || job.Start.Year() > 5138 || job.End.Year() > 5138 {
			t.Errorf("%q is read as %+v", body, job)
		}
		checkText(t, string(job.Status), maxName)
		checkText(t, job.ErrorType, maxText)
		checkText(t, strings.ReplaceAll(job.Message, "\n", ""), maxMessage)
	})
}

// FuzzList holds lists of jobs to what is held of each.
func FuzzList(f *testing.F) {
	f.Add([]byte("[" + details + "]"))
	f.Add([]byte(`[` + details + `, {"type": "DRIVER", "submission_id": null, "status": "RUNNING"}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		jobs, err := readJobs(body, "")
		if err != nil && jobs != nil {
			t.Errorf("%q fails, and has %d jobs", body, len(jobs))
		}
		for i, job := range jobs {
			if !jobID.MatchString(job.ID) || job.Status == "" || i > 0 && job.Start.Before(jobs[i-1].Start) {
				t.Errorf("%q is read as %+v", body, job)
			}
			checkText(t, string(job.Status), maxName)
		}
	})
}

func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"version": "4", "ray_version": "2.60.0", "ray_commit": "b7f4", "session_name": "session_2026-11-21_18-35-06_130358_349"}`))
	f.Add([]byte(`{"ray_version": "2.60.0", "session_name": "a", "session_name": "b"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if session, err := readSession(body); err == nil {
			if session.Name == "" || session.Version == "" {
				t.Errorf("%q is read as %+v", body, session)
			}
			checkText(t, session.Name, maxName)
			checkText(t, session.Version, maxName)
		}
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add(500, "Traceback (most recent call last):\nValueError: Job with submission_id a1 already exists. Please use a different submission_id.\n.\n")
	f.Add(404, "Job a1 does not exist")
	f.Fuzz(func(t *testing.T, status int, said string) {
		kind, words := judge(status, said)
		checkText(t, words, maxText+len("…"))
		if kind == "" || kind == Exists && !strings.Contains(said, "Please use a different submission_id") {
			t.Errorf("%d %q is %q", status, said, kind)
		}
	})
}
