package controlstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// How long things may take.
const (
	dialing   = 2 * time.Second
	answering = 3 * time.Second
	// slow is an answer with which a head cannot start: one that took 2 s each was seen to
	// fail, and Ray's own limits for a start leave no more.
	slow = time.Second
	// buffer in bytes is that of one direction: as many connections are kept as there are clusters with a Redis.
	buffer = 4 << 10
	// hops is how often one server may lead to another: a Sentinel to a replica that has
	// just been one of a cluster, and that to its primary.
	hops = 4
)

// limits are how long a question may take.
type limits struct {
	// total is for all of it but the removal of an earlier session's keys.
	total time.Duration
	// clearing is for that removal, a million keys in some seconds. What is left then is removed the next time.
	clearing time.Duration
}

// usual are the limits of every question but a test's.
var usual = limits{total: 10 * time.Second, clearing: 5 * time.Minute}

// connector makes a connection to host:port.
type connector = func(ctx context.Context, address string) (net.Conn, error)

// Client asks stores and sweeps in them.
type Client struct {
	// Connect makes a connection to a server of the operator's, ConnectGiven to one whose address a user gave, and to
	// each that such a server leads to.
	Connect, ConnectGiven connector
	// Permit is asked right before anything is changed in a store but our own scratch key, and refuses it by an error;
	// nil permits all.
	Permit func() error
	// limits are usual where they are zero.
	limits limits
}

// errand returns what a client wants of a server.
func (c Client) errand(server Server, namespace string) errand {
	task := errand{limits: cmp.Or(c.limits, usual), connect: c.Connect, permit: c.Permit, server: server, namespace: namespace, secrets: []string{server.Password}}
	if server.Given {
		task.connect = c.ConnectGiven
	}
	return task
}

// errand is what somebody wants of a server.
type errand struct {
	limits
	connect   connector
	permit    func() error
	server    Server
	namespace string
	// secrets must not get into any text.
	secrets []string
	// hasty tells that an answer that is slow is as good as none.
	hasty bool
}

// connection is the one to the server that Ray would work with.
type connection struct {
	errand
	place  place
	client *redis.Client
	conn   *redis.Conn
	guard  *guard
	// release unties the connection from the context that it was made with.
	release func() bool
	// version is Redis' own.
	version string
}

// connect finds the server that Ray would work with, as Ray finds it: Sentinels lead to
// their primary, and a replica of a Redis Cluster to its own.
func connect(ctx context.Context, task errand) (*connection, error) {
	at, err := parse(task.server.Address)
	if err != nil {
		return nil, err
	}
	l := &connection{}
	for range hops {
		if l, err = dial(ctx, task, at); err != nil {
			return nil, err
		}
		next, err := l.follow(ctx)
		if err == nil && next == (place{}) {
			return l, nil
		}
		l.close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return nil, problem(reason.StoreUnsupported.Of(l.name(), "it leads to another server, and that to another, without an end"))
}

// dial makes a connection and logs in.
func dial(ctx context.Context, task errand, at place) (*connection, error) {
	l := &connection{errand: task, place: at}
	raw, err := task.reach(ctx, at)
	if err == nil && at.tls {
		raw, err = l.encrypt(ctx, raw)
	}
	if err != nil {
		return nil, l.wrong("connect", err)
	}
	l.guard = &guard{Conn: raw, limit: slow}
	l.release = context.AfterFunc(ctx, func() { _ = raw.Close() }) // what waits for an answer waits no more
	given := make(chan net.Conn, 1)
	given <- l.guard
	l.client = redis.NewClient(&redis.Options{
		Addr: at.String(), Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		ReadBufferSize: buffer, WriteBufferSize: buffer, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, DialTimeout: dialing, ReadTimeout: answering, WriteTimeout: answering,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-given:
				return conn, nil
			default: // a second connection could be to another server
				return nil, net.ErrClosed
			}
		},
	})
	l.conn = l.client.Conn()
	if err := l.login(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// reach connects to a place. A name without a dot is one of the cluster's namespace, where its head seeks it.
func (task errand) reach(ctx context.Context, at place) (net.Conn, error) {
	if net.ParseIP(at.host) == nil && !strings.Contains(at.host, ".") && task.server.Namespace != "" {
		at.host += "." + task.server.Namespace
	}
	limited, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	return task.connect(limited, at.String())
}

// encrypt shakes hands. It wants a certificate by an authority that is trusted. The name is compared where that is
// asked for, or where any public authority is trusted: each would vouch for a server of anybody's. Ray compares none.
func (l *connection) encrypt(ctx context.Context, raw net.Conn) (net.Conn, error) {
	config, err := trust(l.server)
	if err != nil {
		_ = raw.Close()
		return nil, problem(reason.StoreNotTrusted.Of(l.name(), clean(err.Error())))
	}
	if name := cmp.Or(l.server.ServerName, l.place.host); net.ParseIP(name) == nil {
		config.ServerName = name // some servers choose their certificate by it
	}
	config.VerifyConnection = l.verify(config.RootCAs)
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// trust says whom to trust, and who we are.
func trust(server Server) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // verify does it
	if server.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(server.CA) {
			return nil, errors.New("the Secret of the authority holds no certificate")
		}
	}
	if server.Certificate != nil || server.Key != nil {
		pair, err := tls.X509KeyPair(server.Certificate, server.Key)
		if err != nil {
			return nil, fmt.Errorf("our own certificate and its key cannot be used: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// certifiedName returns what the server's certificate must be for, empty where any name will do.
func (l *connection) certifiedName() string {
	if l.server.ServerName == "" && l.server.CA == nil {
		return l.place.host
	}
	return l.server.ServerName
}

// verify returns what checks a server's certificate. No roots are the public ones.
func (l *connection) verify(roots *x509.CertPool) func(tls.ConnectionState) error {
	name := l.certifiedName()
	return func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			between.AddCert(certificate)
		}
		certificate := state.PeerCertificates[0]
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil || name == "" {
			return err
		}
		return certificate.VerifyHostname(name)
	}
}

// login says who we are in the words that Ray uses. They matter: a server whose user default
// is open takes any password where the user is named, and refuses one where it is not.
func (l *connection) login(ctx context.Context) error {
	words := []any{"PING"}
	switch {
	case l.server.Username != "":
		words = []any{"AUTH", l.server.Username, l.server.Password}
	case l.server.Password != "":
		words = []any{"AUTH", l.server.Password}
	}
	replies, err := l.ask(ctx, words)
	if err != nil {
		return err
	}
	refusal, refused := reply(replies[0].Err())
	if refused && words[0] == "AUTH" && code(refusal) != "LOADING" {
		return problem(reason.StoreWrongPassword.Of(l.name(), l.said(refusal)))
	}
	return l.check(replies)
}

// close hangs up.
func (l *connection) close() {
	l.release()
	_ = l.conn.Close()
	_ = l.client.Close()
	_ = l.guard.Close() // it was never given out if nothing was asked
}

// name is what people know the server by.
func (l *connection) name() string {
	if given, err := parse(l.server.Address); err == nil && given.String() != l.place.String() {
		return l.place.String() + " (to which " + given.String() + " leads)"
	}
	return l.place.String()
}

// ask sends commands in one go, and fails if they were not all answered, or too late. What
// the answers say is the caller's matter.
func (l *connection) ask(ctx context.Context, commands ...[]any) ([]*redis.Cmd, error) {
	replies := make([]*redis.Cmd, len(commands))
	_, _ = l.conn.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, words := range commands {
			replies[i] = pipe.Do(ctx, words...)
		}
		return nil
	})
	for i, command := range replies {
		_, refused := reply(command.Err())
		if err := command.Err(); err != nil && !refused && !errors.Is(err, redis.Nil) {
			return nil, l.wrong(name(commands[i]), err)
		}
	}
	if l.hasty && l.guard.late.Load() {
		return nil, problem(reason.StoreSlow.Of(l.name(), slow))
	}
	return replies, nil
}

// act is ask for commands that change something, with a permit, and fails if any is refused.
func act(ctx context.Context, l *connection, commands ...[]any) ([]*redis.Cmd, error) {
	if l.permit != nil {
		if err := l.permit(); err != nil {
			return nil, problem(reason.StoreUnreachable.Of(l.name(), err.Error()))
		}
	}
	replies, err := l.ask(ctx, commands...)
	if err == nil {
		err = l.check(replies)
	}
	return replies, err
}

// check is the first refusal among answers.
func (l *connection) check(replies []*redis.Cmd) error {
	for _, command := range replies {
		if _, refused := reply(command.Err()); refused {
			return l.wrong(name(command.Args()), command.Err())
		}
	}
	return nil
}

// permitted is check for commands whose effect does not matter: where a key is of another
// type, the command was let through.
func (l *connection) permitted(replies []*redis.Cmd) error {
	return l.check(slices.DeleteFunc(slices.Clone(replies), func(command *redis.Cmd) bool {
		words, refused := reply(command.Err())
		return refused && code(words) == "WRONGTYPE"
	}))
}

// name is a command for people: its word and its key, never what follows.
func name(words []any) string {
	text := fmt.Sprint(words[0])
	if len(words) > 1 && text != "AUTH" && text != "ACL" {
		text += " " + fmt.Sprint(words[1])
	}
	return text
}

// follow tells where this server leads, nowhere if it is the one that Ray works with.
func (l *connection) follow(ctx context.Context) (place, error) {
	replies, err := l.ask(ctx, []any{"ACL", "WHOAMI"}, []any{"INFO", "SENTINEL"}, []any{"INFO", "SERVER"})
	if err != nil {
		return place{}, err
	}
	// Who may not ask is asked nothing, and what is older than ACLs knows one user.
	if taken, err := replies[0].Text(); err == nil && taken != user(l.server) {
		return place{}, problem(reason.StoreWrongPassword.Of(l.name(), fmt.Sprintf("it takes us for the user %s, not %s", l.said(taken), user(l.server))))
	}
	if err := l.check(replies[1:]); err != nil {
		return place{}, err
	}
	if sentinel, _ := replies[1].Text(); sentinel != "" {
		return l.primary(ctx)
	}
	about, _ := replies[2].Text()
	l.version = clean(field(about, "redis_version"))
	replies, err = tryWrite(ctx, l)
	if err != nil {
		return place{}, err
	}
	if moved, _ := reply(replies[0].Err()); code(moved) == "MOVED" {
		return l.moved(moved)
	}
	return place{}, l.permitted(replies)
}

// tryWrite changes nothing, and shows whether the keys are here and can be written.
func tryWrite(ctx context.Context, l *connection) ([]*redis.Cmd, error) {
	return l.ask(ctx, []any{"HDEL", markerKey(l.namespace), "heliostat-probe"})
}

// field is a field of what INFO says.
func field(info, name string) string {
	for text := range strings.Lines(info) {
		if value, found := strings.CutPrefix(text, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// moved is where "MOVED SLOT HOST:PORT" leads.
func (l *connection) moved(words string) (place, error) {
	parts := strings.Fields(words)
	if len(parts) == 3 {
		if host, port, err := net.SplitHostPort(parts[2]); err == nil {
			return l.sibling(host, port)
		}
	}
	return place{}, problem(reason.StoreUnsupported.Of(l.name(), l.said(words)))
}

// primary is where a Sentinel leads.
func (l *connection) primary(ctx context.Context) (place, error) {
	replies, err := l.ask(ctx, []any{"SENTINEL", "MASTERS"})
	if err == nil {
		err = l.check(replies)
	}
	if err != nil {
		return place{}, err
	}
	all, _ := replies[0].Slice()
	if len(all) != 1 {
		return place{}, problem(reason.StoreUnsupported.Of(l.name(), fmt.Sprintf("the Sentinel knows %d primaries, and Ray wants exactly one", len(all))))
	}
	fields := map[string]string{}
	pairs, _ := all[0].([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return l.sibling(fields["ip"], fields["port"])
}

// sibling is a server that another names. Where it names no host, it means its own.
func (l *connection) sibling(host, port string) (place, error) {
	if host == "" || host == "?" {
		host = l.place.host
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return place{}, problem(reason.StoreUnsupported.Of(l.name(), "it leads to a server without a port"))
	}
	if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
		return place{}, problem(reason.StoreUnsupported.Of(l.name(), "it leads to a server whose name is no host's"))
	}
	return place{host: host, port: port, tls: l.place.tls}, nil
}
