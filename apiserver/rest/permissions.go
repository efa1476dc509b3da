package rest

import (
	"net/http"
	"slices"
	"strings"
)

// Permission is a right on resources of heliostat.dev that a call needs.
type Permission struct {
	// Verb is Kubernetes'.
	Verb string
	// Resource is a plural, with its subresource; "" is that of the object's kind, and "KIND/" begins a subresource of that.
	Resource string
}

// callConvert is the one call with a body that changes nothing, and callCreate the one whose body has the kind that its
// permission is about.
const (
	callConvert = "ConvertManifests"
	callCreate  = "CreateObject"
)

// permissions are what each call needs, beside who the caller is. Lists need a verb where they list.
var permissions = map[string][]Permission{
	"GetMe":             {},
	"ListNamespaces":    {},
	"ListPresets":       {},
	callConvert:         {},
	"ListObjects":       {{Verb: "list"}},
	"WatchObjects":      {{Verb: "watch"}},
	"GetObject":         {{Verb: "get"}},
	callCreate:          {{Verb: "create"}},
	"SuspendObject":     {{Verb: "get"}, {Verb: "patch"}},
	"ResumeObject":      {{Verb: "get"}, {Verb: "patch"}},
	"ScaleObject":       {{Verb: "get"}, {Verb: "patch"}},
	"StopObject":        {{Verb: "get"}, {Verb: "patch"}},
	"UndoObject":        {{Verb: "get"}, {Verb: "patch"}},
	"RetryObject":       {{Verb: "get"}, {Verb: "create"}},
	"ListHistory":       {{Verb: "list"}},
	"GetHistory":        {{Verb: "list"}},
	"DeleteHistory":     {{"delete", ofKind + "history"}},
	"ListFiles":         filesOfKinds,
	"ReadFile":          filesOfKinds,
	"DownloadFiles":     filesOfKinds,
	"ReadLog":           {{"get", "clusterjobs/log"}},
	"ListRounds":        {{"get", "clusterjobs/log"}},
	"ListReplicas":      {{"get", "clusterservices/log"}},
	"ReadReplicaLog":    {{"get", "clusterservices/log"}},
	"ListSubmissions":   {{"get", "computeclusters/proxy"}},
	"GetSubmission":     {{"get", "computeclusters/proxy"}},
	"ReadSubmissionLog": {{"get", "computeclusters/proxy"}},
	"CreateSubmission":  {{"create", "computeclusters/proxy"}},
	"StopSubmission":    {{"create", "computeclusters/proxy"}},
}

// ofKind begins a subresource of an object's kind.
const ofKind = "KIND/"

// filesOfKinds are what calls for files need: the one that is about the object's kind.
var filesOfKinds = []Permission{{"get", "clusterjobs/log"}, {"get", "clusterservices/log"}, {"get", "computeclusters/proxy"}}

// Permissions returns what a call needs.
func Permissions(call string) []Permission { return permissions[call] }

// Codes returns the HTTP codes by which a route answers, beside those that every route has: 400, 401, 429, 500, 503 and 504.
func Codes(route Route) []int {
	codes := []int{http.StatusOK}
	if route.Call == callCreate {
		codes = append(codes, http.StatusCreated)
	}
	if len(permissions[route.Call]) > 0 {
		codes = append(codes, http.StatusForbidden)
	}
	if strings.Contains(route.Path, "{name}") {
		codes = append(codes, http.StatusNotFound)
	}
	isAboutHead := slices.ContainsFunc([]string{"/submissions", "/replicas", "/jobs/{name}/"}, func(part string) bool {
		return strings.Contains(route.Path, part)
	})
	isChange := Request{route: &route}.IsChange()
	isAboutKept := isAboutKept(route.Call)
	if isChange || isAboutHead || isAboutKept {
		codes = append(codes, http.StatusConflict)
	}
	if isAboutKept && route.Call != "ListHistory" || route.Call == "ReadLog" {
		codes = append(codes, http.StatusGone)
	}
	if route.Method == http.MethodPost {
		codes = append(codes, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if isChange && !isAboutHead && !isAboutKept {
		codes = append(codes, http.StatusUnprocessableEntity)
	}
	return codes
}

// isAboutKept reports whether a call is about what is kept of objects.
func isAboutKept(call string) bool {
	return slices.Contains([]string{"ListHistory", "GetHistory", "DeleteHistory", "ListFiles", "ReadFile", "DownloadFiles"}, call)
}
