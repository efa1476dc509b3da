package session

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// minKey is how many bytes a key has at least, and maxKeys how many of them there are.
	minKey, maxKeys = 32, 4
	maxKeyFile      = 16 << 10
	// lookEach is how often the file is looked at.
	lookEach = time.Second
	// settle is for how long a new key only opens. Kubernetes takes up to two minutes until each replica has the new file.
	settle = 5 * time.Minute
	// version begins what is sealed. One of another version is not opened.
	version = 1
)

// Keys seal texts and open them. They may be used by many goroutines.
type Keys struct {
	file  string
	clock clock.PassiveClock
	log   *slog.Logger

	mutex  sync.Mutex
	looked time.Time
	known  ring
}

// ring is what a file holds.
type ring struct {
	changed time.Time
	size    int64
	keys    []cipher.AEAD
}

// ReadKeys reads a file with one key on each line. The first one seals; the others are former ones, which only open.
// The file is read again when it changes. Where it then is bad, the former keys hold and the log says why.
func ReadKeys(file string, now clock.PassiveClock, log *slog.Logger) (*Keys, error) {
	k := &Keys{file: file, clock: now, log: log, looked: now.Now()}
	changed, size, err := k.look()
	if err != nil {
		return nil, err
	}
	return k, k.read(changed, size)
}

// look returns what tells one content of the file from another.
func (k *Keys) look() (time.Time, int64, error) {
	info, err := os.Stat(k.file)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("read the session keys: %w", err)
	}
	return info.ModTime(), info.Size(), nil
}

func (k *Keys) read(changed time.Time, size int64) error {
	if size > maxKeyFile {
		return fmt.Errorf("read the session keys: %s has more than %d bytes: write one key on each line", k.file, maxKeyFile)
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return fmt.Errorf("read the session keys: %w", err)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("read the session keys: %s: %w", k.file, err)
	}
	k.known = ring{changed: changed, size: size, keys: keys}
	return nil
}

// parseKeys returns the keys of a file. Any text will do that is long enough: what seals is derived from it.
func parseKeys(text []byte) ([]cipher.AEAD, error) {
	var all []cipher.AEAD
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(line) < minKey:
			return nil, fmt.Errorf("key %d has fewer than %d bytes: write a longer one, such as openssl rand -base64 48 makes",
				len(all)+1, minKey)
		case len(all) == maxKeys:
			return nil, fmt.Errorf("it holds more than %d keys: keep the current and the previous one", maxKeys)
		}
		one, err := newAEAD(line)
		if err != nil {
			return nil, fmt.Errorf("use key %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it holds no key: write one of at least %d bytes", minKey)
	}
	return all, nil
}

func newAEAD(secret []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "heliostat session", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	made, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return made, nil
}

// now returns the keys that the file holds now.
func (k *Keys) now() ring {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if now := k.clock.Now(); now.Sub(k.looked) >= lookEach {
		k.looked = now
		changed, size, err := k.look()
		if err == nil && (!changed.Equal(k.known.changed) || size != k.known.size) {
			err = k.read(changed, size)
		}
		if err != nil {
			k.log.Error("Cannot read the session keys; the previous keys stay valid", "error", err)
		}
	}
	return k.known
}

// sealer returns the key that seals: the first one, once each replica knows it.
func (r ring) sealer(now time.Time) cipher.AEAD {
	if len(r.keys) > 1 && now.Sub(r.changed) < settle {
		return r.keys[1]
	}
	return r.keys[0]
}

// Seal returns a text that only Open with the same purpose reads, in letters that cookies and addresses can hold.
func (k *Keys) Seal(purpose string, text []byte) string {
	key := k.now().sealer(k.clock.Now())
	//nolint:gosec // G407: the cipher makes a random nonce
	made := key.Seal([]byte{version}, nil, text, associated(purpose))
	return base64.RawURLEncoding.EncodeToString(made)
}

// Open returns what was sealed for a purpose, or ErrBroken.
func (k *Keys) Open(purpose, text string) ([]byte, error) {
	read, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(read) == 0 || read[0] != version {
		return nil, ErrBroken
	}
	for _, key := range k.now().keys {
		if opened, err := key.Open(nil, nil, read[1:], associated(purpose)); err == nil {
			return opened, nil
		}
	}
	return nil, ErrBroken
}

// associated returns what must be the same when a text is opened.
func associated(purpose string) []byte { return append([]byte{version}, purpose...) }
