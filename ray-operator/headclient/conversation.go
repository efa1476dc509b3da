package headclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	strict "sigs.k8s.io/json"
)

// Limits on what the job API may send, in bytes.
const (
	// maxAnswer is for all but logs. Ray's message of a job alone may have 20,000 characters.
	maxAnswer = 1 << 20
	// maxLog is how much of a log is read to find its end.
	maxLog = 64 << 20
)

// Jobs is one conversation with the job API of one head: the HTTP of its dashboard, over
// one TCP connection. When that breaks every further call fails with Unavailable and the
// caller dials anew; so two calls that both succeeded were answered by the same process.
// Nothing is ever repeated by itself. It may be used by many goroutines, which take turns.
type Jobs struct {
	address   string
	options   Options
	transport *http.Transport
	line      *line
}

// DialJobs prepares to speak to the dashboard at host:port. It sends nothing: the first
// call connects.
func DialJobs(address string, options Options) (*Jobs, error) {
	if err := checkAddress(address); err != nil {
		return nil, fail(Invalid, "prepare to ask the head for jobs", err)
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	line := &line{}
	// Proxy stays nil: the environment has no say in where a token goes.
	return &Jobs{address: address, options: options, line: line, transport: &http.Transport{
		DialContext: line.dial, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize: buffer, WriteBufferSize: buffer,
	}}, nil
}

// Close gives the connection up; calls under way fail, and so do further ones.
func (j *Jobs) Close() error {
	err := j.line.close()
	j.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close the connection to the jobs of the head at %s: %w", j.address, err)
	}
	return nil
}

// line is the one connection of a conversation: it is dialled once.
type line struct {
	mu           sync.Mutex
	used, closed bool
	connection   net.Conn
}

var errUsedUp = errors.New("the connection of this conversation is gone")

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	used := l.used || l.closed
	l.used = true
	l.mu.Unlock()
	if used {
		return nil, errUsedUp
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = connection.Close() // it was not wanted any more before it came
		return nil, errUsedUp
	}
	l.connection = connection
	return connection, nil
}

func (l *line) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.connection == nil {
		return nil
	}
	if err := l.connection.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// question is one request.
type question struct {
	act, method, path string
	query             url.Values
	body              []byte
	// into takes the body of an answer up to limit bytes; nil is the answer's own, and
	// the usual limit.
	into  io.Writer
	limit int64
	// patience is how many timeouts the answer may take; 0 is one.
	patience int
}

// answer is what came back, and the token that was sent, which is in nothing that we show.
type answer struct {
	body  []byte
	token string
	// cut tells that there was more than the limit.
	cut bool
}

// ask sends one request, once, within the timeout, and sorts what can go wrong.
func (j *Jobs) ask(ctx context.Context, q question) (answer, error) {
	limited, stop := context.WithTimeout(ctx, time.Duration(max(1, q.patience))*j.options.Timeout)
	defer stop()
	token, err := j.options.token(limited)
	if err != nil {
		return answer{}, j.fail(Unauthenticated, q.act, err)
	}
	response, err := j.transport.RoundTrip(j.request(limited, q, token)) // which follows no redirect
	if err != nil {
		return answer{}, j.sort(ctx, q.act, err)
	}
	defer func() { _ = response.Body.Close() }()
	reply, err := q.read(response)
	if err != nil {
		return answer{}, j.sort(ctx, q.act, err)
	}
	reply.token = token
	coding := response.Header.Get("Content-Encoding")
	switch {
	case coding != "" && coding != "identity":
		return answer{}, j.fail(Protocol, q.act, errors.New("the answer is compressed, which nobody asked for"))
	case reply.cut && q.into == nil:
		return answer{}, j.fail(Protocol, q.act, fmt.Errorf("the answer has more than %d bytes", maxAnswer))
	case response.StatusCode != http.StatusOK:
		kind, words := judge(response.StatusCode, hide(string(reply.body), token))
		return answer{}, j.fail(kind, q.act, fmt.Errorf("status %d: %s", response.StatusCode, words))
	}
	return reply, nil
}

// read reads the body of an answer up to the limit, and looks whether that was all.
func (q question) read(response *http.Response) (answer, error) {
	own := &bytes.Buffer{}
	if q.into == nil || response.StatusCode != http.StatusOK {
		q.into, q.limit = own, maxAnswer
	}
	n, err := io.Copy(q.into, io.LimitReader(response.Body, q.limit))
	if err != nil || n < q.limit {
		return answer{body: own.Bytes()}, err
	}
	more, err := io.ReadFull(response.Body, make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return answer{body: own.Bytes(), cut: more > 0}, err
}

// request is a question on the wire. Ray takes what looks like a browser's for an attack.
func (j *Jobs) request(ctx context.Context, q question, token string) *http.Request {
	request := (&http.Request{
		Method: q.method,
		URL:    &url.URL{Scheme: "http", Host: j.address, Path: q.path, RawQuery: q.query.Encode()},
		Header: http.Header{"User-Agent": {"heliostat"}, "Accept-Encoding": {"identity"}},
	}).WithContext(ctx)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if q.body != nil {
		request.Header.Set("Content-Type", "application/json")
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(q.body)), int64(len(q.body))
	}
	return request
}

// sort tells the failures of a connection from those of who is at its other end, whose
// words are not repeated: it was told the token.
func (j *Jobs) sort(ctx context.Context, act string, err error) error {
	var timed net.Error
	var network *net.OpError
	switch {
	case ctx.Err() != nil: // the caller's own end
		kind := Unavailable
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = Timeout
		}
		return j.fail(kind, act, context.Cause(ctx))
	case errors.As(err, &timed) && timed.Timeout():
		return j.fail(Timeout, act, errors.New("no whole answer came in time"))
	case errors.As(err, &network), errors.Is(err, errUsedUp):
		return j.fail(Unavailable, act, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return j.fail(Unavailable, act, errors.New("the connection broke"))
	default:
		return j.fail(Protocol, act, errors.New("what came is not HTTP, or has headers without end"))
	}
}

func (j *Jobs) fail(kind Kind, act string, err error) *Error {
	return fail(kind, act+" at "+j.address, err)
}

// judge sorts an answer that is not OK, as Ray 2.52 to 2.60 were seen to give them. The
// dashboard passes most on to an agent, and what that says comes as a traceback within a 500.
func judge(status int, said string) (Kind, string) {
	words := lastWords(said)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Unauthenticated, words
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return Refused, words
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable, words
	case http.StatusNotFound:
		if strings.HasPrefix(said, "Job ") && strings.HasSuffix(said, " does not exist") {
			return NotFound, words
		}
		return Protocol, words // by someone who has never heard of jobs
	case http.StatusInternalServerError:
		for _, known := range []struct {
			words string
			kind  Kind
		}{
			{"Please use a different submission_id", Exists},
			{"No available agent to submit job", Unavailable},
			{"Failed to get head node agent within", Unavailable},
			{"Cannot connect to host", Unavailable}, // the agent's, which may be gone with its node
			{"Request failed with status code 404: Job ", NotFound},
			{"Request failed with status code 400", Refused},
			{"non-terminal state", Refused},
		} {
			if strings.Contains(said, known.words) {
				return known.kind, words
			}
		}
	}
	return Protocol, words
}

// lastWords is the last line of a text with words in it: where a traceback says why.
func lastWords(said string) string {
	said = strings.TrimRight(said, ". \r\n")
	return text([]byte(said[strings.LastIndexByte(said, '\n')+1:]))
}

// decode reads an object of JSON: unknown fields pass, those that come twice do not.
func decode(body []byte, into any) error {
	twice, err := strict.UnmarshalStrict(body, into, strict.DisallowDuplicateFields)
	if err != nil || len(twice) > 0 {
		return errors.New("the answer is not the JSON that Ray gives") // what it is might hold the token
	}
	return nil
}
