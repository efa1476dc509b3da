package headclient

import (
	"context"
	"sync"
)

// Remembered is a token that is read when it is needed first, and again once a head has refused it: no call to a head
// costs a read of a Secret. Nil is no token.
type Remembered struct {
	read Token

	mu    sync.Mutex
	token string
	known bool
}

// Remember returns a Remembered that reads a token, nil where there is none to read.
func Remember(read Token) *Remembered {
	if read == nil {
		return nil
	}
	return &Remembered{read: read}
}

// Token gives what clients are dialled with.
func (r *Remembered) Token() Token {
	if r == nil {
		return nil
	}
	return r.get
}

// get gives the token. A read that fails is repeated the next time.
func (r *Remembered) get(ctx context.Context) (string, error) {
	r.mu.Lock()
	token, known := r.token, r.known
	r.mu.Unlock()
	if known {
		return token, nil
	}
	token, err := r.read(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token, r.known = token, true
	return token, nil
}

// Heard takes how a call ended: a token that was refused is read again.
func (r *Remembered) Heard(err error) {
	if r == nil || KindOf(err) != Unauthenticated {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token, r.known = "", false
}
