// Package pki makes the certificates and credentials of an instance: one
// authority, one identity for each component, so that the audit log and RBAC
// tell them apart as on any other cluster.
//
// In: a list of identities. Out: a directory of certificates, keys and
// kubeconfigs, complete or absent. It must never replace one that is there:
// running components hold its content.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity outlives any local cluster.
const validity = 5 * 365 * 24 * time.Hour

// Identity is one holder of a certificate.
type Identity struct {
	File   string // base name of its files
	User   string
	Groups []string
	DNS    []string // names and addresses it serves under, if it serves
	IPs    []netip.Addr
	Client bool // whether it also gets a kubeconfig
}

// Authority is what Make makes.
type Authority struct {
	Dir    string
	Server string // URL of the API server, for the kubeconfigs
}

// Path is one file of the directory: <identity>.crt, .key or .kubeconfig,
// ca.crt and ca.key, front.crt and front.key (the aggregator's authority),
// service-accounts.key.
func (a Authority) Path(file string) string { return filepath.Join(a.Dir, file) }

// Make makes everything, unless it is there.
func (a Authority) Make(now time.Time, identities []Identity) error {
	if _, err := os.Stat(a.Dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	draft := Authority{Dir: a.Dir + ".new", Server: a.Server}
	if err := os.RemoveAll(draft.Dir); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := os.MkdirAll(draft.Dir, 0o700); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := draft.fill(now, identities); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := os.Rename(draft.Dir, a.Dir); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	return nil
}

func (a Authority) fill(now time.Time, identities []Identity) error {
	ca, err := a.root(now, "ca", "localkube")
	if err != nil {
		return err
	}
	front, err := a.root(now, "front", "localkube-front-proxy")
	if err != nil {
		return err
	}
	if _, err := a.key("service-accounts"); err != nil {
		return err
	}
	if err := a.issue(now, front, Identity{File: "front-client", User: "front-proxy-client"}); err != nil {
		return err
	}
	for _, id := range identities {
		if err := a.issue(now, ca, id); err != nil {
			return err
		}
		if id.Client {
			if err := a.kubeconfig(ca, id); err != nil {
				return err
			}
		}
	}
	return nil
}

type root struct {
	cert *x509.Certificate
	pem  []byte
	key  crypto.Signer
}

func (a Authority) root(now time.Time, file, name string) (root, error) {
	key, err := a.key(file)
	if err != nil {
		return root{}, err
	}
	cert := template(now, pkix.Name{CommonName: name})
	cert.IsCA, cert.BasicConstraintsValid = true, true
	cert.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	data, err := a.sign(file, cert, root{cert: cert, key: key}, key)
	return root{cert: cert, pem: data, key: key}, err
}

func (a Authority) issue(now time.Time, by root, id Identity) error {
	key, err := a.key(id.File)
	if err != nil {
		return err
	}
	cert := template(now, pkix.Name{CommonName: id.User, Organization: id.Groups})
	cert.KeyUsage = x509.KeyUsageDigitalSignature
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.DNS)+len(id.IPs) > 0 {
		cert.ExtKeyUsage = append(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	cert.DNSNames = id.DNS
	for _, ip := range id.IPs {
		cert.IPAddresses = append(cert.IPAddresses, net.IP(ip.AsSlice()))
	}
	_, err = a.sign(id.File, cert, by, key)
	return err
}

// template starts an hour ago: a clock that is set back must not break it.
func template(now time.Time, subject pkix.Name) *x509.Certificate {
	serial := make([]byte, 16)
	rand.Read(serial) // never fails
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

func (a Authority) key(file string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key %s: %w", file, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", file, err)
	}
	return key, a.write(file+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func (a Authority) sign(file string, cert *x509.Certificate, by root, key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, by.cert, key.Public(), by.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", file, err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return data, a.write(file+".crt", data)
}

// kubeconfig holds the credentials themselves: it can be copied elsewhere.
func (a Authority) kubeconfig(ca root, id Identity) error {
	cert, err := os.ReadFile(a.Path(id.File + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(a.Path(id.File + ".key"))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["localkube"] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: ca.pem}
	config.AuthInfos[id.User] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["localkube"] = &clientcmdapi.Context{Cluster: "localkube", AuthInfo: id.User}
	config.CurrentContext = "localkube"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", id.User, err)
	}
	return a.write(id.File+".kubeconfig", data)
}

func (a Authority) write(file string, data []byte) error {
	if err := os.WriteFile(a.Path(file), data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
