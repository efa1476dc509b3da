package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

var began = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

// authority writes the files of a new authority.
func authority(t *testing.T, now time.Time) (directory string) {
	t.Helper()
	a, err := pki.New("demo", now)
	if err != nil {
		t.Fatal(err)
	}
	ca, key, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	directory = t.TempDir()
	for name, text := range map[string][]byte{pki.AuthorityCertificateFile: ca, pki.AuthorityKeyFile: key} {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func leaf(t *testing.T, directory string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, pki.CertificateFile))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// TestCertify_WritesAllFiles: also a second time, over files that nobody may write.
func TestCertify_WritesAllFiles(t *testing.T) {
	c := certify{authority: authority(t, began), out: t.TempDir(), names: "demo-head, localhost,,demo-head.team"}
	var serials []string
	for range 2 {
		if err := c.write("192.0.2.7, 2001:db8::7,127.0.0.1", began); err != nil {
			t.Fatal(err)
		}
		got := leaf(t, c.out)
		if want := []string{"demo-head", "localhost", "demo-head.team"}; !slices.Equal(got.DNSNames, want) {
			t.Errorf("it is for %v, not %v", got.DNSNames, want)
		}
		if diff := cmp.Diff("[192.0.2.7 2001:db8::7 127.0.0.1 ::1]", fmt.Sprint(got.IPAddresses)); diff != "" {
			t.Error(diff)
		}
		if _, _, err := pki.ReadFiles(c.out); err != nil {
			t.Error(err)
		}
		serials = append(serials, got.SerialNumber.String())
		if err := os.WriteFile(filepath.Join(c.out, pki.KeyFile+".new"), nil, 0o444); err != nil { // one was killed
			t.Fatal(err)
		}
	}
	if serials[0] == serials[1] {
		t.Error("the second run wrote nothing")
	}
	entries, err := os.ReadDir(c.out)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil {
			t.Error(err)
		} else {
			list = append(list, info.Mode().String()+" "+entry.Name())
		}
	}
	want := []string{"-r--r--r-- ca.crt", "-r--r--r-- tls.crt", "-r--r--r-- tls.key", "-r--r--r-- tls.key.new"}
	if diff := cmp.Diff(want, list); diff != "" { // tls.key.new is this test's
		t.Error(diff)
	}
}

func TestCertify_ReadsAddressesOfItsEnvironment(t *testing.T) {
	directory, out := authority(t, time.Now()), t.TempDir()
	t.Setenv(variableAddresses, "192.0.2.7")
	if err := run([]string{"certify", "--authority=" + directory, "--out=" + out}); err != nil {
		t.Fatal(err)
	}
	if got := leaf(t, out); got.VerifyHostname("192.0.2.7") != nil || got.VerifyHostname("localhost") != nil {
		t.Errorf("it is for %v, %v", got.DNSNames, got.IPAddresses)
	}
}

func TestCertify_SaysWhatIsMissing(t *testing.T) {
	good := certify{authority: authority(t, began), out: t.TempDir()}
	nowhere := filepath.Join(t.TempDir(), "none")
	broken := authority(t, began)
	if err := os.Remove(filepath.Join(broken, pki.AuthorityKeyFile)); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		certify certify
		podIPs  string
		now     time.Time
		want    string
	}{
		"no address":         {good, "", began, "read POD_IPS: it is empty"},
		"only commas":        {good, " ,,", began, "read POD_IPS: it is empty"},
		"an address not one": {good, "192.0.2.7,demo", began, "read POD_IPS"},
		"no authority":       {certify{authority: nowhere, out: good.out}, "192.0.2.7", began, "read the authority"},
		"no key":             {certify{authority: broken, out: good.out}, "192.0.2.7", began, "ca.key"},
		"a name not one":     {certify{good.authority, good.out, "ü"}, "192.0.2.7", began, "issue a certificate"},
		"no place":           {certify{authority: good.authority, out: nowhere}, "192.0.2.7", began, "write "},
		"its time is over":   {good, "192.0.2.7", began.AddDate(11, 0, 0), "its authority is valid from"},
	} {
		if err := row.certify.write(row.podIPs, row.now); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(good.out); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
