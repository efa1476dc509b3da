package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// variableAddresses holds the addresses of the pod, from the downward API.
const variableAddresses = "POD_IPS"

// certify makes the certificate of a pod.
type certify struct{ authority, out, names string }

func defineCertify(set *flag.FlagSet) *certify {
	c := &certify{}
	set.StringVar(&c.authority, "authority", "", "directory with ca.crt and ca.key of the cluster")
	set.StringVar(&c.out, "out", "", "directory to write ca.crt, tls.crt and tls.key to")
	set.StringVar(&c.names, "names", "", "comma-separated DNS names of the pod; its addresses are in $"+variableAddresses)
	return c
}

func (c *certify) run(context.Context) error {
	return c.write(os.Getenv(variableAddresses), time.Now())
}

// write writes the files of a pod with these addresses, over those that are there.
func (c *certify) write(podIPs string, now time.Time) error {
	if c.authority == "" || c.out == "" {
		return errors.New("read flags: --authority and --out are needed")
	}
	addresses, err := readAddresses(podIPs)
	if err != nil {
		return err
	}
	ca, authority, err := readAuthority(c.authority)
	if err != nil {
		return err
	}
	certificate, key, err := authority.Issue(unique(append(list(c.names), "localhost")), addresses, now)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{pki.AuthorityCertificateFile, ca}, {pki.CertificateFile, certificate}, {pki.KeyFile, key}} {
		if err := replace(filepath.Join(c.out, file.name), file.text); err != nil {
			return err
		}
	}
	return nil
}

// readAddresses returns the addresses of a pod, and those that it has for itself.
func readAddresses(podIPs string) ([]netip.Addr, error) {
	given := list(podIPs)
	if len(given) == 0 {
		return nil, fmt.Errorf("read %s: it is empty, and must hold the addresses of the pod", variableAddresses)
	}
	var addresses []netip.Addr
	for _, text := range append(given, "127.0.0.1", "::1") {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", variableAddresses, err)
		}
		addresses = append(addresses, address)
	}
	return unique(addresses), nil
}

// readAuthority returns the authority in a directory, and its certificate as it is shown to others.
func readAuthority(directory string) (ca []byte, authority *pki.Authority, err error) {
	var texts [2][]byte
	for i, name := range []string{pki.AuthorityCertificateFile, pki.AuthorityKeyFile} {
		path := filepath.Join(directory, name)
		if texts[i], err = os.ReadFile(path); err != nil { //nolint:gosec // the directory is a flag of the operator's
			return nil, nil, fmt.Errorf("read the authority: %w", err)
		}
	}
	if authority, err = pki.Read(texts[0], texts[1]); err != nil {
		return nil, nil, err
	}
	ca, _, err = authority.Encode()
	return ca, authority, err
}

// replace writes a file that all may read, at once: who reads it meanwhile sees the former one or this one. The user of
// the other containers is not known, and only containers of this pod see the directory.
func replace(path string, text []byte) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was killed
		return fmt.Errorf("write %s: %w", path, err)
	}
	err := os.WriteFile(fresh, text, 0o600)
	if err == nil {
		err = os.Chmod(fresh, 0o444) //nolint:gosec // all may read it
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// list returns the parts of a comma-separated text that are not empty.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// unique returns values without those that came before.
func unique[T comparable](values []T) []T {
	var once []T
	for _, value := range values {
		if !slices.Contains(once, value) {
			once = append(once, value)
		}
	}
	return once
}
