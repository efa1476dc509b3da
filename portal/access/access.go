// Package access learns who a caller is, and acts for callers.
//
// In: requests of callers, who is believed to be whom, and where the API server is. Out: callers; a transport and clients
// that act for one caller each; what Kubernetes says that a caller may do.
//
// By default the caller's own token goes along, and the API server judges it. With Impersonate the server's own credential
// goes along with the caller's name. No other package of the server makes clients of Kubernetes that act for a caller.
// It must never act for somebody whom it has not identified, let a caller name another identity, remember an error, or put
// a token into a text.
package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// agent is the server's name in requests that are its own, reviews among them.
const agent = "heliostat-server"

// Options are what New needs.
type Options struct {
	// Address is the https address of the API server, whose certificate is of an authority in CAFile. That file is read for
	// each connection, as authorities are replaced.
	Address, CAFile string
	// TokenFile has the token of the server's own account. It is read again each minute.
	TokenFile string
	// Identity says who is believed to be whom.
	Identity Identity
	// Scheme has the kinds that clients of callers read and write.
	Scheme *runtime.Scheme
	Clock  clock.PassiveClock
}

// Kubernetes is the API server, asked for callers. It may be used by many goroutines.
type Kubernetes struct {
	clients

	identity Identity
	issuers  map[string]*issuer
	proxy    *frontProxy
	// reviews are asked as the server itself.
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface

	callers   *recent[*Caller]
	refused   *recent[error]
	decisions *recent[error]
	// lately and permitted are what IdentifyLately and MayLately go by.
	lately    *recent[*Caller]
	permitted *recent[struct{}]
	// namespaces and allNamespaces are the UIDs of namespaces, as they were a moment ago.
	namespaces    *recent[types.UID]
	allNamespaces *recent[map[string]types.UID]
	// whose and may are the questions that are on their way.
	whose *together[*Caller]
	may   *together[struct{}]
}

// clients make what speaks to the API server, for one caller each or as the server itself.
type clients struct {
	address *url.URL
	clock   clock.PassiveClock
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	// lanes carries tokens of callers, account the server's own.
	lanes   *lanes
	account *account
}

// Bounds of what is remembered.
const (
	maxCallers   = 10_000
	maxRefused   = 10_000
	maxDecisions = 50_000
	maxProxies   = 100
	// maxNamespaces is how many namespaces have their UIDs remembered.
	maxNamespaces = 10_000
)

// New returns the API server.
func New(o Options) (*Kubernetes, error) {
	address, err := readAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if _, err := authorities(o.CAFile); err != nil {
		return nil, err
	}
	own, err := newAccount(o.TokenFile, o.CAFile)
	if err != nil {
		return nil, err
	}
	k := &Kubernetes{
		clients: clients{
			address: address, clock: o.Clock, scheme: o.Scheme, mapper: newMapper(o.Scheme), lanes: newLanes(o.CAFile, o.Clock), account: own,
		},
		identity: o.Identity, issuers: map[string]*issuer{},
		callers: newRecent[*Caller](o.Clock, maxCallers), refused: newRecent[error](o.Clock, maxRefused),
		decisions: newRecent[error](o.Clock, maxDecisions), lately: newRecent[*Caller](o.Clock, maxCallers),
		permitted: newRecent[struct{}](o.Clock, maxDecisions), namespaces: newRecent[types.UID](o.Clock, maxNamespaces),
		allNamespaces: newRecent[map[string]types.UID](o.Clock, 1), whose: newTogether[*Caller](), may: newTogether[struct{}](),
	}
	if err := k.believe(o.Identity); err != nil {
		return nil, err
	}
	config, carrier := k.settings(own)
	authentication, err := authenticationclient.NewForConfigAndClient(config, carrier)
	if err != nil {
		return nil, fmt.Errorf("make a client of the server: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, carrier)
	if err != nil {
		return nil, fmt.Errorf("make a client of the server: %w", err)
	}
	k.tokens, k.rights = authentication.TokenReviews(), authorization.SubjectAccessReviews()
	return k, nil
}

// believe makes the authenticator that identifies callers.
func (k *Kubernetes) believe(identity Identity) error {
	for _, one := range identity.Issuers {
		made, err := newIssuer(one, k.clock)
		if err != nil {
			return fmt.Errorf("read the issuer %s: %w", one.URL, err)
		}
		k.issuers[one.URL] = made
	}
	if identity.FrontProxy == nil {
		return nil
	}
	made, err := newFrontProxy(*identity.FrontProxy, k.clock)
	if err != nil {
		return fmt.Errorf("read the front proxy: %w", err)
	}
	k.proxy = made
	return nil
}

func readAddress(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || (parsed.Path != "" && parsed.Path != "/") {
		return nil, fmt.Errorf("read the address of the API server: %q is not https://HOST:PORT", parsed.Redacted())
	}
	parsed.Path = ""
	return parsed, nil
}

// Address returns where the API server is.
func (k *clients) Address() *url.URL { return k.address }

// ConfigureTLS has a listener ask for the certificate by which a front proxy is known. Nobody needs to have one.
func (k *Kubernetes) ConfigureTLS(settings *tls.Config) {
	if k.proxy != nil {
		settings.ClientAuth, settings.ClientCAs = tls.RequestClientCert, k.proxy.authority
	}
}

// Errors of a review.
var (
	// ErrUnauthorized is that a caller is not believed, or no longer.
	ErrUnauthorized = problem.ErrUnauthorized
	// ErrForbidden is that the caller may not do what was asked about.
	ErrForbidden = errors.New("the token's owner has no right to it, or no longer")
)
