package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Token is what is known of the Secret with the cluster's token.
type Token struct {
	// Presence is Ours also for a Secret of the user's that holds a token.
	Presence reconcile.Presence
	// Hash is a short hash of the token, empty where it was not read. It tells a token
	// from another, and is far too short to tell which one it is.
	Hash string
	// Lacking says what is wrong with a Secret of the user's.
	Lacking string
}

// ownSecret returns the name of the user's own Secret, empty where the operator makes one.
func ownSecret(cluster *v1beta1.ComputeCluster) string {
	if name := pod.TokenSecret(cluster); name != naming.TokenSecret(cluster.Name) {
		return name
	}
	return ""
}

// tokenLook is how often a Secret of the user's is looked at for a change: the operator
// may not watch Secrets.
const tokenLook = time.Minute

// tokenAgain is how often the operator's own Secret is looked at where nothing else asks for it, and tokenLooks how many
// such looks all clusters together have a minute at most: nobody should change it.
const (
	tokenAgain = 15 * time.Minute
	tokenLooks = 8
)

// tokenPause returns how long a look at the operator's own Secret is good for, among so many clusters. It doubles, so
// that a cluster keeps its turns, or every second one of them, when others come and go.
func tokenPause(clusters int) time.Duration {
	pause := tokenAgain
	for float64(clusters) > tokenLooks*pause.Minutes() {
		pause *= 2
	}
	return pause
}

// Tokens remembers what was last seen of the operator's own Secrets. It is lost with the process, which then looks
// again within tokenPause. The zero value is ready.
type Tokens struct {
	mu    sync.Mutex
	known map[types.NamespacedName]lookedAt
}

// lookedAt is what was seen of the Secret of a cluster, or that its turn is counted from then where seen is false.
type lookedAt struct {
	Token
	cluster types.UID
	at      time.Time
	seen    bool
}

// recallToken returns what is known of a cluster's Secret, and how long that is good for, 0 where it is time to look.
func (t *Tokens) recallToken(cluster *v1beta1.ComputeCluster, now time.Time) (lookedAt, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := client.ObjectKeyFromObject(cluster)
	known := t.known[name]
	if known.cluster != cluster.UID {
		known = t.noteToken(name, lookedAt{Token: Token{Presence: reconcile.Ours}, cluster: cluster.UID, at: now})
	}
	// The UID spreads clusters: after a start of the operator they come one by one.
	hash, pause := fnv.New32a(), tokenPause(len(t.known))
	_, _ = hash.Write([]byte(cluster.UID)) // a hash takes everything
	offset := time.Duration(hash.Sum32()) * time.Millisecond % pause
	next := known.at.Add(offset).Truncate(pause).Add(pause - offset)
	return known, max(0, next.Sub(now))
}

// noteToken keeps what is known; the caller holds the lock.
func (t *Tokens) noteToken(name types.NamespacedName, known lookedAt) lookedAt {
	if t.known == nil {
		t.known = map[types.NamespacedName]lookedAt{}
	}
	t.known[name] = known
	return known
}

// keepToken remembers what was seen of a cluster's Secret.
func (t *Tokens) keepToken(cluster *v1beta1.ComputeCluster, token Token, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteToken(client.ObjectKeyFromObject(cluster), lookedAt{Token: token, cluster: cluster.UID, at: now, seen: true})
}

// Forget ends the memory of a cluster.
func (t *Tokens) Forget(cluster types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, cluster)
}

// isDue reports whether it is time to look at the operator's own Secret: it was not there, or of a cluster that runs
// it was looked at long ago, or something asks for it.
func (l lookedAt) isDue(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan, good time.Duration, now time.Time) bool {
	if l.seen && l.Presence != reconcile.Ours {
		return true
	}
	runs := plan.Stalled == nil && !plan.Suspended && len(seen.Pods) > 0
	return runs && (good == 0 || l.isAsked(cluster, seen, now))
}

// isAsked reports whether something seen of a cluster asks for a look at the operator's own Secret: the status or the
// pods tell of another token, or a pod waits for it.
func (l lookedAt) isAsked(cluster *v1beta1.ComputeCluster, seen Seen, now time.Time) bool {
	if !l.seen && (tellsOfToken(cluster) || hasTwoTokens(seen.Pods)) {
		return true
	}
	return len(seen.Events) > 0 && slices.ContainsFunc(seen.Pods, func(p Pod) bool {
		finding, found := seen.diagnose(p, now)
		return found && lacksToken(cluster, finding)
	})
}

// tellsOfToken reports whether the status says that the token is gone, or another.
func tellsOfToken(cluster *v1beta1.ComputeCluster) bool {
	told := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionUpToDate)
	return told != nil && (told.Reason == reason.TokenMissing.Code || told.Reason == reason.TokenChanged.Code)
}

// lacksToken reports whether a finding is that the Secret with the token does not exist.
func lacksToken(cluster *v1beta1.ComputeCluster, finding reason.Finding) bool {
	return finding.Code == reason.VolumeNotReady.Code && strings.Contains(finding.Text, "Secret "+pod.TokenSecret(cluster)+" of a volume")
}

// hasTwoTokens reports whether pods were started with different tokens.
func hasTwoTokens(pods []Pod) bool {
	first := ""
	for _, p := range pods {
		hash := p.Annotations[v1beta1.AnnotationToken]
		if hash != "" && first != "" && hash != first {
			return true
		}
		first = cmp.Or(first, hash)
	}
	return false
}

// seeToken looks at the token's Secret. The operator has no right to list Secrets, so
// this is a live read; it is for where a pod must be made, or where the Secret is the
// user's, who may change it.
func (o observer) seeToken(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) (err error) {
	if pod.TokenRequired(cluster) {
		seen.Token, err = readToken(ctx, o.live, cluster, seen.Token)
	}
	return err
}

// readToken reads the token's Secret, past the cache. The hash of a token that was known stays where the operator's own
// Secret is gone.
func readToken(ctx context.Context, live client.Reader, cluster *v1beta1.ComputeCluster, token Token) (Token, error) {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: pod.TokenSecret(cluster)}
	err := live.Get(ctx, key, &secret)
	if ownSecret(cluster) != "" {
		token, err = usersToken(err, &secret)
	} else {
		token.Presence, err = presence(err, &secret, cluster)
	}
	if err != nil {
		return token, fmt.Errorf("read Secret %s: %w", key, err)
	}
	if token.Presence == reconcile.Ours {
		token.Hash = naming.TokenHash(string(secret.Data[v1beta1.TokenKey]))
	}
	return token, nil
}

// usersToken judges a Secret that the user made.
func usersToken(err error, secret *corev1.Secret) (Token, error) {
	switch {
	case apierrors.IsNotFound(err):
		return Token{Lacking: "is not there"}, nil
	case err != nil:
		return Token{}, err
	case len(secret.Data[v1beta1.TokenKey]) == 0:
		return Token{Lacking: "has no key " + v1beta1.TokenKey}, nil
	default:
		return Token{Presence: reconcile.Ours}, nil
	}
}

// planToken plans the token's Secret. A living head has read its token, so a new one would only keep new pods out:
// none is made then.
func planToken(b basis, isHeld bool) (plan secretPlan) {
	own := ownSecret(b.cluster)
	if own != "" {
		plan.wake = tokenLook
	}
	var missing reason.Finding
	switch {
	case !pod.TokenRequired(b.cluster), b.seen.Token.Presence == reconcile.Ours:
		return plan
	case own != "":
		missing = reason.TokenSecretInvalid.Of(own, b.seen.Token.Lacking)
	case b.head != nil:
		missing = reason.TokenMissing.Of(naming.TokenSecret(b.cluster.Name))
	default:
		plan.isMade = !isHeld && storeOf(b).Obstacle() == nil // it goes with the first pod
		return plan
	}
	plan.missing = &missing
	return plan
}
