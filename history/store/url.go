package store

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // scheme azblob
	_ "gocloud.dev/blob/gcsblob"   // scheme gs
	_ "gocloud.dev/blob/s3blob"    // scheme s3
)

// parameters are what a URL of a scheme may set. What weakens TLS, leaves out or replaces credentials, or reads files is not
// among them.
var parameters = map[string][]string{
	"s3": {
		"region", "endpoint", "use_path_style", "ssetype", "kmskeyid", "fips", "dualstack", "request_checksum_calculation",
		"response_checksum_validation",
	},
	"gs":     {"universe_domain"},
	"azblob": {"storage_account", "domain"},
}

// checkURL judges the URL of a bucket, and returns it without its path, which is the prefix of all keys.
func checkURL(text string) (bucket, prefix string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse has the URL, which can hold a password.
		return "", "", fmt.Errorf("parse the URL of the store: %w", ErrRefused)
	}
	allowed, is := parameters[u.Scheme]
	switch {
	case !is:
		return "", "", fmt.Errorf("scheme %q of the store; use s3, gs or azblob, or a claim: %w", u.Scheme, ErrRefused)
	case u.User != nil || u.Fragment != "" || u.Opaque != "" || u.Host == "" || u.Port() != "":
		return "", "", fmt.Errorf("the URL of the store must be %s://BUCKET[/PREFIX][?PARAMETERS]: %w", u.Scheme, ErrRefused)
	}
	if err := checkParameters(u.RawQuery, allowed); err != nil {
		return "", "", err
	}
	prefix = strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return "", "", fmt.Errorf("path of the store's URL: %w", err)
		}
		prefix += "/"
	}
	u.Path, u.RawPath = "", ""
	return u.String(), prefix, nil
}

// checkParameters judges the parameters of a URL.
func checkParameters(text string, allowed []string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return fmt.Errorf("parse the parameters of the store's URL: %w", ErrRefused)
	}
	for name, values := range query {
		if len(values) != 1 || !slices.Contains(allowed, name) {
			return fmt.Errorf("parameter %q of the store's URL; allowed once each are %s: %w", name, strings.Join(allowed, ", "), ErrRefused)
		}
	}
	if endpoint := query.Get("endpoint"); endpoint != "" && !strings.HasPrefix(endpoint, "https://") {
		return fmt.Errorf("the endpoint of the store's URL must begin with https://: %w", ErrRefused)
	}
	return nil
}

// Open opens the bucket of a URL. Credentials come from the environment of the program, as the cloud's own libraries find them.
func Open(ctx context.Context, text string) (*Store, error) {
	bucket, prefix, err := checkURL(text)
	if err != nil {
		return nil, err
	}
	opened, err := blob.OpenBucket(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if prefix != "" {
		opened = blob.PrefixedBucket(opened, prefix)
	}
	return &Store{bucket: opened}, nil
}
