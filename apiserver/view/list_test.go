package view_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// mixed returns a view with objects that differ in all that can be asked for.
func mixed(t *testing.T) *view.View {
	red := cluster("a", "red", 1)
	red.Labels = map[string]string{"team": "x"}
	red.Status.Phase = v1beta1.PhaseStarting
	red.Status.Conditions = conditions(metav1.ConditionFalse, reason.HeadStarting.Of("red-head"), began.Add(time.Hour))
	green := cluster("b", "green", 2)
	green.Annotations = map[string]string{v1beta1.AnnotationOwner: "Ana@Example.com"}
	blue := job("a", "blue-job", 3)
	blue.Labels = map[string]string{"team": "x", "tier": "gold"}
	return filled(t, red, green, blue, service("b", "api", 4), pod(green, "p", 5, 8))
}

func TestList_FiltersAndSorts(t *testing.T) {
	v := mixed(t)
	for name, test := range map[string]struct {
		query view.Query
		want  string
	}{
		"everything by name":         {view.Query{}, "b/services/api a/jobs/blue-job b/clusters/green a/clusters/red"},
		"one kind":                   {view.Query{Kinds: []string{"clusters"}}, "b/clusters/green a/clusters/red"},
		"one namespace":              {view.Query{Namespaces: []string{"a", "zz"}}, "a/jobs/blue-job a/clusters/red"},
		"a label":                    {view.Query{Labels: "team=x,tier!=gold"}, "a/clusters/red"},
		"phases":                     {view.Query{Phases: []string{"Starting", "Running"}}, "a/jobs/blue-job a/clusters/red"},
		"a code":                     {view.Query{Codes: []string{"HeadStarting"}}, "a/clusters/red"},
		"text in a name":             {view.Query{Text: "BLUE"}, "a/jobs/blue-job"},
		"text in an owner":           {view.Query{Text: "ana@"}, "b/clusters/green"},
		"text in a message":          {view.Query{Text: "red-head"}, "a/clusters/red"},
		"nothing":                    {view.Query{Text: "nowhere"}, ""},
		"by name, reversed":          {view.Query{Sort: "-name"}, "a/clusters/red b/clusters/green a/jobs/blue-job b/services/api"},
		"by phase, ties by key":      {view.Query{Sort: "phase"}, "b/clusters/green b/services/api a/jobs/blue-job a/clusters/red"},
		"by phase, reversed":         {view.Query{Sort: "-phase"}, "a/clusters/red a/jobs/blue-job b/clusters/green b/services/api"},
		"by GPUs, most first":        {view.Query{Sort: "-gpus", Limit: 1}, "b/clusters/green"},
		"by age of the code, newest": {view.Query{Sort: "-since", Kinds: []string{"clusters"}}, "a/clusters/red b/clusters/green"},
		"by creation":                {view.Query{Sort: "created"}, "a/clusters/red b/services/api b/clusters/green a/jobs/blue-job"},
		"what the caller may see": {view.Query{May: func(kind, namespace string) bool {
			return namespace == "b" && kind != view.Services
		}}, "b/clusters/green"},
		"a whole kind": {view.Query{May: func(kind, namespace string) bool { return kind == view.Jobs && namespace == "" }}, "a/jobs/blue-job"},
		"a namespace that the caller may not see": {view.Query{Namespaces: []string{"a"}, May: func(_, namespace string) bool { return namespace == "b" }}, ""},
	} {
		if have := strings.Join(names(list(t, v, test.query)), " "); have != test.want {
			t.Errorf("%s: %q, want %q", name, have, test.want)
		}
	}
}

// TestList_AsksForFewRights: a right to all namespaces is asked for first, and no namespace is after that.
func TestList_AsksForFewRights(t *testing.T) {
	v := mixed(t)
	var asked []string
	list(t, v, view.Query{May: func(kind, namespace string) bool {
		asked = append(asked, kind+"/"+namespace)
		return kind == view.Clusters
	}})
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"clusters/", "jobs/", "jobs/a", "schedules/", "services/", "services/b"}, asked); diff != "" {
		t.Errorf("- want, + asked:\n%s", diff)
	}
}

func TestList_SaysWhatIsWrong(t *testing.T) {
	v := mixed(t)
	first := list(t, v, view.Query{Limit: 1})
	for name, test := range map[string]struct {
		query         view.Query
		field, remedy string
	}{
		"a kind":             {view.Query{Kinds: []string{"cluster"}}, "kinds", `write "clusters"`},
		"a sort":             {view.Query{Sort: "-crated"}, "sort", `write "created"`},
		"a limit":            {view.Query{Limit: 501}, "limit", "give 1 to 500"},
		"a negative limit":   {view.Query{Limit: -1}, "limit", "give 1 to 500"},
		"a selector":         {view.Query{Labels: "a=(b"}, "labels", "team=a"},
		"a long text":        {view.Query{Text: strings.Repeat("x", 300)}, "text", "at most 256"},
		"an empty namespace": {view.Query{Namespaces: []string{""}}, "namespaces", "1 to 253"},
		"many phases":        {view.Query{Phases: make([]string, 201)}, "phases", "at most 200"},
		"a cursor":           {view.Query{Continue: "x"}, "continue", "leave it out"},
		"another query's":    {view.Query{Continue: first.Continue, Sort: "gpus"}, "continue", "repeat the query"},
		"another filter's":   {view.Query{Continue: first.Continue, Text: "a"}, "continue", "repeat the query"},
	} {
		test.query.May = all
		var findings view.Findings
		_, err := v.List(context.Background(), test.query)
		if !errors.As(err, &findings) || findings[0].Field != test.field || !strings.Contains(findings[0].Remedy, test.remedy) || findings[0].Message == "" {
			t.Errorf("%s: %v, want field %s and remedy %q", name, err, test.field, test.remedy)
		}
	}
	_, err := v.List(context.Background(), view.Query{Kinds: []string{"pod"}, Sort: "x", Limit: 900, May: all})
	var findings view.Findings
	if !errors.As(err, &findings) || len(findings) != 3 {
		t.Errorf("three errors give %v", err)
	}
}

// TestList_PagesAreRightWhileObjectsChange: no line comes twice, and none is missing that was there throughout.
func TestList_PagesAreRightWhileObjectsChange(t *testing.T) {
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 2))
		var objects []any
		steady := map[view.Key]bool{}
		for i := range 30 {
			one := cluster("a", number(i), 1)
			objects = append(objects, one, pod(one, number(i)+"-p", 2, random.IntN(4)))
			steady[key(view.Clusters, one.Name)] = true
		}
		v, rv := filled(t, objects...), 200
		sort := []string{"", "-"}[random.IntN(2)] + view.Sorts()[random.IntN(5)]
		disturb := func() {
			rv++
			one := cluster("a", number(random.IntN(35)), rv)
			one.Status.Phase = []string{"Ready", "Starting", "Failed"}[random.IntN(3)]
			one.Status.Conditions = conditions(metav1.ConditionTrue, reason.AllReady.Of(1, 1), began.Add(time.Duration(random.IntN(9))*time.Hour))
			switch random.IntN(6) {
			case 0:
				remove(t, v, one)
				delete(steady, key(view.Clusters, one.Name))
			case 1:
				update(t, v, pod(one, one.Name+"-p", rv, random.IntN(4)))
			default:
				update(t, v, one)
			}
		}
		seen := map[view.Key]int{}
		for query := (view.Query{Sort: sort, Limit: 1 + random.IntN(7)}); ; {
			page := list(t, v, query)
			for _, line := range page.Lines {
				seen[line.Key]++
			}
			if query.Continue = page.Continue; page.Continue == "" {
				break
			}
			for range random.IntN(6) {
				disturb()
			}
		}
		for key, times := range seen {
			if times > 1 {
				t.Errorf("seed %d, by %s: %s is in %d pages", seed, sort, key, times)
			}
		}
		for key := range steady {
			if seen[key] == 0 {
				t.Errorf("seed %d, by %s: %s is in no page", seed, sort, key)
			}
		}
	}
}

// TestList_OfAnotherServer: a page that was begun elsewhere waits for what that one had seen, and not for ever.
func TestList_OfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := func() []any { return []any{cluster("a", "c1", 1), cluster("a", "c2", 2), cluster("a", "c3", 3)} }
		here, there := filled(t, objects()...), filled(t, objects()...)
		change := func() *v1beta1.ComputeCluster { return cluster("a", "c9", 101) }
		update(t, there, change())
		query := view.Query{Sort: "-phase", Limit: 2}
		first := list(t, there, query)
		query.Continue, query.May = first.Continue, all
		var findings view.Findings
		if _, err := here.List(t.Context(), query); !errors.As(err, &findings) || findings[0].Field != "continue" {
			t.Errorf("a server that is behind says %v", err)
		}
		go func() {
			<-time.After(time.Second)
			if err := here.Store(view.Clusters, "").Update(change()); err != nil {
				t.Error(err)
			}
		}()
		second := list(t, here, query)
		if have := append(names(first), names(second)...); len(have) != 4 {
			t.Errorf("two servers list %v", have)
		}
	})
}

func TestList_SaysThatAPageIsTooOld(t *testing.T) {
	v := filled(t, cluster("a", "c1", 1), cluster("a", "c2", 2))
	query := view.Query{Sort: "gpus", Limit: 1}
	query.Continue, query.May = list(t, v, query).Continue, all
	for i := range 9000 {
		update(t, v, cluster("a", "c1", 101+i))
	}
	var findings view.Findings
	if _, err := v.List(context.Background(), query); !errors.As(err, &findings) || !strings.Contains(findings[0].Message, "too old") {
		t.Errorf("a page after 9000 changes: %v", err)
	}
	query.Sort, query.Continue = "", ""
	query.Continue = list(t, v, query).Continue
	for i := range 9000 {
		update(t, v, cluster("a", "c1", 10101+i))
	}
	if have := names(list(t, v, query)); len(have) != 1 || have[0] != "a/clusters/c2" {
		t.Errorf("by name the page has %v", have)
	}
}

func FuzzCursor(f *testing.F) {
	v := view.New()
	for _, kind := range append(view.Kinds(), view.Pods) {
		if err := v.Store(kind, "").Replace(nil, "100"); err != nil {
			f.Fatal(err)
		}
	}
	for i := range 3 {
		if err := v.Store(view.Clusters, "").Update(cluster("a", number(i), 101+i)); err != nil {
			f.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a position ahead is not waited for
	for _, sort := range view.Sorts() {
		page, err := v.List(ctx, view.Query{Sort: sort, Limit: 1, May: all})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sort, page.Continue)
		f.Add(sort, page.Cursor)
	}
	f.Fuzz(func(t *testing.T, sort, token string) {
		var findings view.Findings
		if page, err := v.List(ctx, view.Query{Sort: sort, Continue: token, May: all}); err != nil && !errors.As(err, &findings) {
			t.Errorf("a cursor gives %v", err)
		} else if err == nil && len(page.Lines) > 3 {
			t.Errorf("a cursor gives %d lines", len(page.Lines))
		}
		if mark, err := v.ParseMark(token); err == nil {
			again, err := v.ParseMark(view.JoinMark(v.Place(mark), mark.Scope))
			if diff := cmp.Diff(mark, again); err != nil || diff != "" {
				t.Errorf("a mark is not read as it was written: %v, %s", err, diff)
			}
			if mark.At != nil {
				_, _ = v.Since(mark.At)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	v := view.New()
	if err := v.Store(view.Clusters, "").Replace([]any{cluster("a", "c", 1)}, "100"); err != nil {
		f.Fatal(err)
	}
	f.Add("clusters", "a", "team=x", "Ready", "AllReady", "text", "-name", 10)
	f.Add("cluster", "", "a in (b,c)", "", "", "Ä", "gpu", -1)
	f.Fuzz(func(t *testing.T, kind, namespace, labels, phase, code, text, sort string, limit int) {
		split := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) }
		query := view.Query{
			Kinds: split(kind), Namespaces: split(namespace), Labels: labels, Phases: split(phase), Codes: split(code), Text: text, Sort: sort, Limit: limit, May: all,
		}
		var findings view.Findings
		page, err := v.List(context.Background(), query)
		if err != nil && (!errors.As(err, &findings) || len(findings) == 0) {
			t.Errorf("a query gives %v", err)
		}
		for _, one := range findings {
			if one.Field == "" || one.Message == "" || one.Remedy == "" {
				t.Errorf("a finding lacks something: %+v", one)
			}
		}
		isForAll := labels == "" && text == "" && len(query.Kinds)+len(query.Namespaces)+len(query.Phases)+len(query.Codes) == 0
		if err == nil && isForAll && len(page.Lines) == 0 {
			t.Error("a query for everything finds nothing")
		}
	})
}

// BenchmarkView_FirstPage lists a hundred of 5,000 lines, by each order.
func BenchmarkView_FirstPage(b *testing.B) {
	var objects []any
	for i := range 5000 {
		one := cluster(fmt.Sprint("team-", i%50), number(i), i+1)
		one.Labels = map[string]string{"team": fmt.Sprint(i % 50), "app": "x"}
		objects = append(objects, one, pod(one, number(i)+"-p", i+1, i%9))
	}
	v := filled(b, objects...)
	for _, sort := range view.Sorts() {
		b.Run(sort, func(b *testing.B) {
			for b.Loop() {
				if page := list(b, v, view.Query{Sort: sort, Limit: 100}); len(page.Lines) != 100 || page.Continue == "" {
					b.Fatalf("a page has %d lines", len(page.Lines))
				}
			}
		})
	}
	b.Run("text", func(b *testing.B) {
		for b.Loop() {
			list(b, v, view.Query{Text: "c49", Limit: 100})
		}
	})
}
