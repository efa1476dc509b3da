package client

import (
	"strings"
	"testing"
)

func TestFiles_AreCheckedBeforeTheyAreUsed(t *testing.T) {
	files := Files{Certificate: t.TempDir() + "/tls.crt", Key: "k", Authorities: "a"}
	if err := files.Check(); err == nil || !strings.Contains(err.Error(), "read the certificate for archivers") {
		t.Errorf("files that are not there are %v", err)
	}
	if _, _, err := Secure(files).ServerHandshake(nil); err == nil {
		t.Error("a client serves")
	}
}
