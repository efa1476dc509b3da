package headclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on Serve, in bytes.
const (
	// maxServing is of what a head says of Serve: 1,000 deployments of ten replicas each.
	maxServing = 8 << 20
	// maxConfig is of what may be deployed.
	maxConfig = 4 << 20
	// maxRefusal is of what Serve says of a configuration that it does not take.
	maxRefusal = 384
	// maxLastLine is of the last line of a log.
	maxLastLine = 500
)

// Serve is one conversation with the dashboard of one head about Ray Serve, over one TCP
// connection. When that breaks every further call fails with Unavailable and the caller
// dials again; so two calls that both succeeded were answered by the same process. Nothing is
// ever repeated by itself. It may be used by many goroutines, which take turns.
type Serve struct{ conversation }

// DialServe prepares to speak to the dashboard at host:port. It sends nothing: the first
// call connects.
func DialServe(address string, options Options) (*Serve, error) {
	conversation, err := begin("prepare to ask the head for Serve", address, options)
	if err != nil {
		return nil, err
	}
	return &Serve{conversation}, nil
}

// applications is where Serve's applications are, all of them, as one document.
const applications = "/api/serve/applications/"

// Serving asks what Serve does, with the applications that did not come over this API too.
// It is not Running where no controller was found, which says nothing about applications:
// Ray answers the same while its GCS is away.
func (s *Serve) Serving(ctx context.Context) (Serving, error) {
	const act = "ask what Serve does"
	answer, err := s.ask(ctx, question{
		act: act, method: http.MethodGet, path: applications, limit: maxServing, judge: judgeServe,
	})
	if err != nil {
		return Serving{}, err
	}
	limited, stop := context.WithTimeout(ctx, s.options.Timeout)
	defer stop()
	giveBack, err := s.options.Memory.take(limited, int64(jsonParts(answer.body))*partMemory+int64(len(answer.body)))
	if err != nil {
		return Serving{}, s.fail(Timeout, act, err)
	}
	defer giveBack()
	serving, err := readServing(answer.body, answer.token)
	if err != nil {
		return Serving{}, s.fail(Protocol, act, err)
	}
	return serving, nil
}

// deployPatience is how many timeouts a deployment may take. The first one starts Serve's
// controller and waits for its first proxy, which takes many seconds on a head that has just
// come up; Ray itself gives that 60 s.
const deployPatience = 12

// Deploy asks Serve for a whole configuration: a JSON object in Serve's own form, of up to
// 4 MiB. Applications that came this way before and are not in it go. That it was taken does
// not say that anything of it works. After Refused or Invalid nothing was changed; after any
// other failure it may have been taken, or be taken later.
func (s *Serve) Deploy(ctx context.Context, config json.RawMessage) error {
	const act = "deploy applications"
	if err := checkConfig(config); err != nil {
		return s.fail(Invalid, act, err)
	}
	answer, err := s.ask(ctx, question{
		act: act, method: http.MethodPut, path: applications, body: config, patience: deployPatience, judge: judgeServe,
	})
	if err != nil {
		return err
	}
	if len(answer.body) > 0 {
		return s.fail(Protocol, act, errors.New("the answer is not Serve's, which says nothing"))
	}
	return nil
}

// checkConfig finds what must not be sent: what is in a list of applications is Ray's matter.
func checkConfig(config json.RawMessage) error {
	if len(config) > maxConfig {
		return fmt.Errorf("the configuration has %d bytes, and at most %d are sent", len(config), maxConfig)
	}
	if !utf8.Valid(config) {
		return errors.New("the configuration is not valid UTF-8")
	}
	var asked struct {
		Applications *[]map[string]json.RawMessage `json:"applications"`
	}
	if err := decode(config, &asked); err != nil || asked.Applications == nil {
		return errors.New("the configuration is not a JSON object with a list of applications")
	}
	return nil
}

// lastLines is how many lines are looked through for one that is not empty.
const lastLines = 20

// logFile is what the path of a log may be: below the directory, and nothing hidden.
var logFile = regexp.MustCompile(`^[A-Za-z0-9_-][^/\x00-\x1f]*(/[^/.\x00-\x1f][^/\x00-\x1f]*)*$`)

// LastLine asks for the last line of a log that is not empty, without colours, control
// characters and the token, and of at most 500 bytes. It is empty where the log is, and
// NotFound where there is no such file, or its node is gone.
func (s *Serve) LastLine(ctx context.Context, log Log) (string, error) {
	act := "read the last line of " + text([]byte(log.File))
	node, err := ParseNodeID(log.Node)
	if err != nil {
		return "", s.fail(Invalid, act, err)
	}
	if !sendableFile(log.File) {
		return "", s.fail(Invalid, act, errors.New("that is no path below the log directory"))
	}
	answer, err := s.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs/file", judge: judgeLog,
		query: url.Values{"node_id": {node.String()}, "filename": {log.File}, "lines": {strconv.Itoa(lastLines)}},
	})
	if err != nil {
		return "", err
	}
	return lastLine(answer.body, answer.token), nil
}

func sendableFile(name string) bool {
	return len(name) <= maxLine && utf8.ValidString(name) && name == clean(name) && logFile.MatchString(name)
}

// lastLine is the last line of a text in which there is anything.
func lastLine(said []byte, token string) string {
	for end := strings.TrimRight(string(said), " \t\r\n"); end != ""; end = strings.TrimRight(end, " \t\r\n") {
		at := strings.LastIndexByte(end, '\n') + 1
		line := strings.TrimSpace(hide(clean(overwritten(end[at:])), token))
		if line, _ = cut(line, maxLastLine); line != "" {
			return line
		}
		end = end[:at]
	}
	return ""
}

// judgeServe sorts an answer of Serve's part of the dashboard that is not OK. What goes
// wrong between it and the controller comes as a traceback within a 500.
func judgeServe(status int, said string) (Kind, string) {
	switch status {
	case http.StatusBadRequest:
		if isTransient(said) {
			return Unavailable, lastWords(said)
		}
		return Refused, refusal(said)
	case http.StatusNotImplemented: // Ray came without Serve
		return Unsupported, lastWords(said)
	case http.StatusInternalServerError:
		for _, gone := range []string{
			"ray.exceptions.RpcError", "ray.exceptions.GetTimeoutError", "ActorDiedError", "ActorUnavailableError",
			"ray.exceptions.RayActorError", "HTTP proxies not available after",
		} {
			if strings.Contains(said, gone) {
				return Unavailable, lastWords(said)
			}
		}
	}
	return judge(status, said)
}

// transient is how a traceback ends that tells of a fault of Serve's controller or of what it stands on. Serve answers the
// same status to every error of the task that takes a configuration, those that its store has while the GCS is slow among
// them.
var transient = regexp.MustCompile(
	`^([A-Za-z_]\w*\.)*(KVStoreError|RpcError|GetTimeoutError|TimeoutError|ActorDiedError|ActorUnavailableError|RayActorError)(:|$)`)

// isTransient reports whether a refusal is none: the same configuration may be taken later. What pydantic says of a
// configuration is about that alone, whatever words are in it; of a traceback the last line that is not indented counts.
func isTransient(said string) bool {
	first, _, _ := strings.Cut(said, "\n")
	if strings.Contains(first, " validation error") {
		return false
	}
	last := ""
	for line := range strings.Lines(said) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && line[0] != ' ' && line[0] != '\t' {
			last = line
		}
	}
	return transient.MatchString(last)
}

// judgeLog sorts an answer of the part of the dashboard that knows files.
func judgeLog(status int, said string) (Kind, string) {
	if status == http.StatusInternalServerError {
		for _, gone := range []string{"A file is not found at", "Agent for node id"} {
			if strings.Contains(said, gone) {
				return NotFound, lastWords(said)
			}
		}
	}
	return judge(status, said)
}

// refusal is what is wrong with a configuration, in Serve's words. It checks with pydantic,
// which says for each fault where it is, in a line of its own, and then what, indented, with
// what it was given in brackets. That is left out: it may hold what is secret.
func refusal(said string) string {
	first, rest, whole := strings.Cut(said, "\n")
	if !whole || !strings.Contains(first, " validation error") {
		return lastWords(said)
	}
	var faults []string
	fresh, inside := true, false // nothing was said yet of the last one; what it was given goes on
	for line := range strings.Lines(rest) {
		words, indented := strings.CutPrefix(line, "  ")
		switch {
		case !indented:
			faults, fresh, inside = append(faults, strings.TrimSpace(line)), true, false
			continue
		case inside:
			continue
		case len(faults) == 0: // it is of the whole
			faults = append(faults, "serveConfig")
		}
		words, _, inside = strings.Cut(words, " [type=")
		words = strings.TrimPrefix(strings.TrimSpace(words), "Value error, ")
		between := " "
		if fresh {
			between, fresh = ": ", false
		}
		faults[len(faults)-1] += between + words
	}
	short, _ := cut(clean(strings.Join(faults, "; ")), maxRefusal)
	return short
}
