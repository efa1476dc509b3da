package rest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/portal/problem"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Bounds of a list of records.
const (
	maxRecords, defaultRecords = 500, 100
	// maxRecordPages is how many pages of archivers one page is made of: rows that the caller may not see are left out.
	maxRecordPages = 20
	maxNamespaces  = 10_000
)

// historyFilter is a list of records as a filter of lines has it: for the rights that it needs.
type historyFilter struct {
	*heliostatv1.ListHistoryRequest
	kinds []string
}

// GetKinds implements filter.
func (f historyFilter) GetKinds() []string { return f.kinds }

// GetLabels implements filter.
func (historyFilter) GetLabels() string { return "" }

// GetCodes implements filter.
func (historyFilter) GetCodes() []string { return nil }

// GetText implements filter.
func (historyFilter) GetText() string { return "" }

// ListHistory implements the protocol.
func (h history) ListHistory(ctx context.Context, r *heliostatv1.ListHistoryRequest) (*heliostatv1.ListHistoryResponse, error) {
	request, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	archivers, err := h.kept()
	if err != nil {
		return nil, err
	}
	kinds := r.GetKinds()
	if len(kinds) == 0 {
		kinds = namesKept
	}
	for _, kind := range kinds {
		request.Kinds = append(request.Kinds, kindsKept[kind])
	}
	uids, rights, err := h.reach(ctx, r, kinds)
	if err != nil {
		return nil, err
	}
	may := func(one *historyv1.Record) bool {
		return slices.Contains(uids, one.GetNamespaceUid()) && rights.cover(kindOf(one.GetKind()), one.GetNamespace())
	}
	request.NamespaceUids = uids
	if r.GetGone() {
		if may, err = h.addGone(ctx, r, may); err != nil {
			return nil, err
		}
		request.AllNamespaces, request.NamespaceUids = true, nil
	}
	if len(uids) == 0 && !r.GetGone() {
		return &heliostatv1.ListHistoryResponse{}, nil
	}
	return h.list(ctx, archivers.ListRecords, request, may)
}

// addGone returns whether a record may be seen by a caller who may see those of namespaces that are gone, too.
func (h history) addGone(
	ctx context.Context, r *heliostatv1.ListHistoryRequest, may func(*historyv1.Record) bool,
) (func(*historyv1.Record) bool, error) {
	if err := h.may(ctx, goneAttributes("get")); err != nil {
		return nil, err
	}
	there, err := h.Access.NamespaceUIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return func(one *historyv1.Record) bool {
		isNamed := len(r.GetNamespaces()) == 0 || slices.Contains(r.GetNamespaces(), one.GetNamespace())
		return isNamed && (string(there[one.GetNamespace()]) != one.GetNamespaceUid() || may(one))
	}, nil
}

// list fills a page with records that the caller may see.
func (h history) list(
	ctx context.Context, page func(context.Context, *historyv1.ListRecordsRequest) (*historyv1.ListRecordsResponse, error),
	request *historyv1.ListRecordsRequest, may func(*historyv1.Record) bool,
) (*heliostatv1.ListHistoryResponse, error) {
	answer, limit := &heliostatv1.ListHistoryResponse{}, int(request.GetLimit())
	for range maxRecordPages {
		request.Limit = int32(limit - len(answer.GetRecords()))
		found, err := page(ctx, request)
		if err != nil {
			return nil, ofArchivers(err)
		}
		for _, one := range found.GetRecords() {
			if may(one) {
				answer.Records = append(answer.Records, recordOf(one))
			}
		}
		request.After, answer.Continue = found.GetNext(), found.GetNext()
		if answer.GetContinue() == "" || len(answer.GetRecords()) >= limit {
			break
		}
	}
	return answer, nil
}

// listRequest returns what to ask archivers for, or everything that is wrong with what was asked for.
func listRequest(r *heliostatv1.ListHistoryRequest) (*historyv1.ListRecordsRequest, error) {
	var errs []problem.FieldError
	bad := func(field, message, remedy string) {
		errs = append(errs, problem.FieldError{Field: "query." + field, Message: message, Remedy: remedy})
	}
	for _, kind := range r.GetKinds() {
		if kindsKept[kind] == "" {
			bad("kinds", fmt.Sprintf("%.80q has no history", kind), spelling.Remedy(kind, namesKept))
		}
	}
	for _, namespace := range r.GetNamespaces() {
		if checkPath(map[string]string{"namespace": namespace}) != nil {
			bad("namespaces", fmt.Sprintf("%.80q cannot be one", namespace), "give up to 63 lower-case letters, digits and '-'")
		}
	}
	if r.GetLimit() < 0 || r.GetLimit() > maxRecords {
		bad("limit", fmt.Sprintf("must be 1 to %d", maxRecords), "correct it")
	}
	request := &historyv1.ListRecordsRequest{
		Name: r.GetName(), Owner: r.GetOwner(), Phases: r.GetPhases(), Failed: r.GetFailed(), Ended: r.GetEnded(), After: r.GetContinue(),
		Limit: r.GetLimit(),
	}
	if request.GetLimit() == 0 {
		request.Limit = defaultRecords
	}
	var err error
	if request.Since, err = millisecondsOf(r.GetSince()); err != nil {
		bad("since", "is no time", "give one such as 2026-01-31T12:00:00Z")
	}
	if request.Until, err = millisecondsOf(r.GetUntil()); err != nil {
		bad("until", "is no time", "give one such as 2026-01-31T12:00:00Z")
	}
	if len(errs) == 0 {
		return request, nil
	}
	refused := problem.Bad(errs[0].Field, errs[0].Message, errs[0].Remedy)
	refused.Errors = errs
	return nil, refused
}

// millisecondsOf reads a time as RFC 3339 has it; 0 of none.
func millisecondsOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, err
	}
	return at.UnixMilli(), nil
}

// stampOf returns a time in milliseconds as the protocol has it, and nothing for none.
func stampOf(milliseconds int64) *timestamppb.Timestamp {
	if milliseconds == 0 {
		return nil
	}
	return stamp(time.UnixMilli(milliseconds))
}

// reach returns the UIDs of the namespaces that are there now and in which the caller may list some of the kinds, and what the caller may
// list where.
func (h history) reach(ctx context.Context, r *heliostatv1.ListHistoryRequest, kinds []string) ([]string, rights, error) {
	wide, err := h.askRights(ctx, "list", historyFilter{r, kinds})
	if err != nil {
		if r.GetGone() && isForbidden(err) {
			return nil, rights{}, nil
		}
		return nil, rights{}, err
	}
	covers := func(name string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return wide.cover(kind, name) })
	}
	if len(r.GetNamespaces()) == 0 && slices.ContainsFunc(kinds, func(kind string) bool { return wide.everywhere[kind] }) {
		return h.reachAll(ctx, wide, covers)
	}
	names := r.GetNamespaces()
	if len(names) == 0 {
		names = h.View.Namespaces()
	}
	var mutex sync.Mutex
	var uids []string
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range names {
		if !covers(name) {
			continue
		}
		group.Go(guard(func() error {
			uid, err := h.Access.NamespaceUID(inner, name)
			if err != nil {
				return fmt.Errorf("find namespace %s: %w", name, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			if uid != "" {
				uids = append(uids, string(uid))
			}
			return nil
		}))
	}
	err = group.Wait()
	slices.Sort(uids)
	return uids, wide, err
}

// reachAll returns all namespaces that are there now.
func (h history) reachAll(ctx context.Context, wide rights, covers func(string) bool) ([]string, rights, error) {
	all, err := h.Access.NamespaceUIDs(ctx)
	if err != nil {
		return nil, rights{}, fmt.Errorf("list namespaces: %w", err)
	}
	var uids []string
	for name, uid := range all {
		if covers(name) {
			uids = append(uids, string(uid))
		}
	}
	if slices.Sort(uids); len(uids) > maxNamespaces {
		return nil, rights{}, problem.Bad("query.namespaces", fmt.Sprintf("are needed: there are more than %d", maxNamespaces), "name some of them")
	}
	return uids, wide, nil
}
