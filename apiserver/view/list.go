package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
)

// cursorVersion is the version of a cursor's text.
const cursorVersion = 1

// order is one way to sort lines.
type order struct {
	name string
	of   func(*Line) (string, int64)
	// isFixed is that what is sorted by never changes.
	isFixed bool
}

// orders are all ways to sort.
var orders = []order{
	{"name", func(l *Line) (string, int64) { return l.Name, 0 }, true},
	{"phase", func(l *Line) (string, int64) { return l.Phase, 0 }, false},
	{"since", func(l *Line) (string, int64) { return "", l.Since.Unix() }, false},
	{"created", func(l *Line) (string, int64) { return "", l.Created.Unix() }, true},
	{"gpus", func(l *Line) (string, int64) { return "", l.GPUs }, false},
}

// Sorts returns what lines can be sorted by.
func Sorts() []string {
	names := make([]string, 0, len(orders))
	for _, one := range orders {
		names = append(names, one.name)
	}
	return names
}

// Page is a part of what a query finds.
type Page struct {
	// Lines are shared: no caller may change them.
	Lines []*Line
	// Continue asks for the next page, and is empty on the last one.
	Continue string
	// Cursor is where a watch of the same lines begins.
	Cursor string
}

// spot is where a line stands in an order. An object that comes back under its name stands where the former one
// stood, if what is sorted by is the same, so that no page shows it a second time.
type spot struct {
	text   string
	number int64
	key    Key
}

// compare orders spots. Ties are broken by kind, namespace and name, whatever the direction: no two lines share these.
func (s spot) compare(other spot, isReverse bool) int {
	first := strings.Compare(s.text, other.text)
	if first == 0 {
		first = cmp.Compare(s.number, other.number)
	}
	if isReverse {
		first = -first
	}
	return cmp.Or(first, s.key.Compare(other.key))
}

// search is a query that was read.
type search struct {
	filter    *Filter
	order     order
	isReverse bool
	limit     int
	hash      uint64
	// after and at are those of the cursor, where there is one. at is nil where the order is fixed.
	after *spot
	at    Position
}

// readQuery reads a query. It fails with Findings.
func readQuery(q Query) (*search, error) {
	filter, all := filterOf(q)
	s := &search{filter: filter, limit: q.Limit, order: orders[0]}
	name, isReverse := strings.CutPrefix(q.Sort, "-")
	if at := slices.IndexFunc(orders, func(one order) bool { return one.name == name }); at >= 0 {
		s.order, s.isReverse = orders[at], isReverse
	} else if q.Sort != "" {
		all.add("sort", fmt.Sprintf("lines cannot be sorted by %q", cut(name)),
			spelling.Remedy(name, Sorts())+`, with "-" before it for the reverse order`)
	}
	if s.limit == 0 {
		s.limit = defaultLimit
	}
	if s.limit < 1 || s.limit > maxLimit {
		all.add("limit", fmt.Sprintf("limit is %d", q.Limit), fmt.Sprintf("give 1 to %d", maxLimit))
	}
	s.hash = filter.hash + hashOf(s.order.name, fmt.Sprint(s.isReverse))
	if q.Continue != "" {
		s.readCursor(q.Continue, &all)
	}
	return s, all.err()
}

// cursorToken is what the text of a cursor has.
type cursorToken struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	// Query is a hash of what was asked for.
	Query  uint64
	Text   string
	Number int64
	Key    Key
	At     distances
}

// cursor returns the text that asks for the lines behind a spot.
func (s *search) cursor(after spot, at Position) string {
	token := cursorToken{Version: cursorVersion, Query: s.hash, Text: after.text, Number: after.number, Key: after.key}
	if !s.order.isFixed {
		token.At = distancesOf(at)
	}
	return encodeToken(token)
}

func (s *search) readCursor(text string, all *Findings) {
	var token cursorToken
	isOurs := decodeToken(text, &token) == nil && token.Version == cursorVersion
	if isOurs && token.Query != s.hash {
		all.add("continue", "continue is of another query", "repeat the query of the page before, or leave continue out to begin again")
		return
	}
	s.after = &spot{text: token.Text, number: token.Number, key: token.Key}
	if isOurs && !s.order.isFixed {
		s.at, isOurs = token.At.position()
	}
	if !isOurs {
		all.add("continue", "continue is not a token of this server",
			"give it as the page before has it, or leave it out to begin again")
	}
}

func (s *search) spotOf(l *Line) spot {
	text, number := s.order.of(l)
	return spot{text, number, l.Key}
}

// Check returns what is wrong with a query of a page, as Findings.
func Check(q Query) error {
	_, err := readQuery(q)
	return err
}

// List returns a page of the lines that a query is about and that its caller may see. It fails with Findings.
//
// While objects change, no line is in two pages of a query, and none is missing that was there and matched
// throughout. Where lines are sorted by what can change, they stand where they stood at the first page, and say what
// they say now. For this the view goes back in time: a page that is asked for too late fails with a finding that says
// so.
func (v *View) List(ctx context.Context, q Query) (Page, error) {
	s, err := readQuery(q)
	if err != nil {
		return Page{}, err
	}
	reach := v.reachOf(s.filter, q.May)
	if s.at != nil {
		v.await(ctx, s.at)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if s.at == nil {
		s.at = slices.Clone(v.at)
	}
	u, err := v.undo(s.at)
	if err != nil {
		return Page{}, late(err)
	}
	scope := reach.Scope(s.filter, func(place Place) bool { return v.contents.counts[place] > 0 })
	page := Page{Cursor: JoinMark(v.Place(Mark{At: v.at}), scope)}
	found := v.contents.search(s, reach, u)
	if len(found) > s.limit {
		found = found[:s.limit]
		page.Continue = s.cursor(found[s.limit-1].spot, s.at)
	}
	page.Lines = make([]*Line, 0, len(found))
	for _, one := range found {
		page.Lines = append(page.Lines, one.line)
	}
	return page, nil
}

// late says that a page was asked for too late.
func late(err error) error {
	message := "continue is too old: " + err.Error()
	if errors.Is(err, ErrForeign) {
		message = "continue cannot be used here: " + err.Error()
	}
	return Findings{{Field: "continue", Message: message, Remedy: "leave continue out to begin again"}}
}

// match is a line that was found, and where it stands.
type match struct {
	spot spot
	line *Line
}

// search finds the first lines behind the cursor, one more than a page has where there are so many.
func (c *contents) search(s *search, reach *Reach, u *undone) []match {
	found := make([]match, 0, s.limit+2)
	then := c.touched(u)
	for key, one := range c.objects {
		if !reach.Has(key.Kind, key.Namespace) || !s.filter.Matches(one.line) {
			continue
		}
		stood := one.line
		if then[key] {
			if stood = c.lineThen(u, key); stood == nil {
				continue // it is newer than the first page
			}
		}
		at := s.spotOf(stood)
		if s.after != nil && at.compare(*s.after, s.isReverse) <= 0 {
			continue
		}
		if len(found) > s.limit && at.compare(found[s.limit].spot, s.isReverse) >= 0 {
			continue
		}
		place, _ := slices.BinarySearchFunc(found, at, func(a match, b spot) int { return a.spot.compare(b, s.isReverse) })
		found = slices.Insert(found, place, match{at, one.line})
		found = found[:min(len(found), s.limit+1)]
	}
	return found
}

// reachOf asks what a caller may see of what a filter is about. Namespaces are asked about one by one only where the
// right is not to all of them.
func (v *View) reachOf(f *Filter, may func(kind, namespace string) bool) *Reach {
	reach := &Reach{}
	for _, place := range f.Asked() {
		reach.Set(place, may(place.Kind, place.Namespace))
	}
	if f.IsOpen() {
		for _, place := range v.Places() {
			if f.Covers(place) && !reach.IsWide(place.Kind) {
				reach.Set(place, may(place.Kind, place.Namespace))
			}
		}
	}
	return reach
}
