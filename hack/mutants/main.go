// Command mutants shows that the search over all orders of a small world (internal/apitest/orders)
// finds it when a clause of a decision says the opposite. It negates, one at a time, each
// condition of an if, each case of a switch without a tag, each operand of && and ||, and each
// returned condition of the functions below, runs the searches, and prints a table of what found
// each.
//
// All clauses are compiled at once (go build -overlay), and an environment variable says which one
// is negated.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// target is a package, and the files with its decisions.
type target struct {
	folder    string
	functions map[string][]string // by file; none means all
}

const (
	profiles    = "internal/apitest/orders"
	credentials = "pkg/hub/credentials"
	decisions   = "pkg/hub/decisions"
)

var targets = []target{
	{
		folder: "pkg/hub/selection/rule", functions: map[string][]string{
			"decide.go":         nil,
			"decide_choice.go":  nil,
			"decide_install.go": nil,
			"decide_layout.go":  nil,
			"objects.go":        {"requiresPlacement", "Publishes", "IsOlder", "IsOurs", "IsMarked", "IsExclusive", "IsGrouped"},
		},
	},
	{
		folder: "pkg/hub/selection", functions: map[string][]string{
			"absence.go": nil,
			"choice.go":  {"Choice", "Leaving", "leftMoving"},
			"install.go": {"installation", "liveInstallation"},
			"live.go":    {"decideLive", "Granted"},
			"rule.go":    {"Observe", "Settle", "confirm", "isPieced", "confirmed", "Selected"},
		},
	},
	{
		folder: "pkg/hub/inventory/profiles", functions: map[string][]string{"decide.go": {"NextStep", "IsTerminating"}},
	},
	{
		folder: credentials, functions: map[string][]string{
			"desired.go": nil,
			"observe.go": {"observeDefinition", "observeTarget", "rivals", "wantedNamespaces"},
			"apply.go":   {"mayCreate", "selectedLive", "liveProfile"},
		},
	},
	{
		folder: decisions, functions: map[string][]string{
			"desired_clusters.go": nil,
			"reconciler.go":       {"catchUp", "plan", "askAbout", "begin", "movesOut"},
			"references.go": {
				"Allow", "answer", "release", "Refer", "referring", "check", "refusesAny", "allowsAny", "begin",
			},
		},
	},
}

// where are the searches in which to try a clause, by its place and text; the first that matches counts.
// Stories is a regular expression of their names, empty for all.
var where = []struct{ place, search, stories string }{
	{`^selection/rule/decide_layout\.go`, profiles, "slicing"},
	{`^selection/rule/decide_install\.go|^selection/install\.go|settleAddon`, profiles, "installing"},
	{`^selection/rule/decide_choice\.go|^selection/choice\.go|^decisions/`, decisions, ""},
	{`^selection/rule/decide\.go:\d+ Restoring|o\.Restoring|decideAll r\.Answer == Unknown`, credentials, "doubting"},
	{`^selection/live\.go:\d+ Granted|^selection/rule\.go:\d+ Selected|^credentials/`, credentials, ""},
	{``, profiles, ""},
}

// reasons say why the searches cannot find some clauses, by place and text.
var reasons = []struct{ clause, why string }{
	{`[lL]agging|[lL]ags`, "no cache of the small world is older than the process"},
	{`IsOlder`, "the small world never recreates all CRDs together, and otherwise their ages show a restore"},
	{`numberOf`, "the names of fewer than ten slices sort like their numbers"},
	{`err != nil|err == nil`, "no read fails in the small world"},
	{`ProfileAPI`, "the small world always serves ClusterProfiles"},
	{`observeDefinition|o\.known|isIncomplete|\.restoring`, "the CRD of accounts is not deleted in the small world"},
	{`InInventory`, "it decides about the content of profiles, and about how long install strategies are remembered"},
	{`IsTerminating .*namespace != nil`, "the other operand says the same of every namespace there is"},
	{`settleDecisions .*(!ok|result\.Answer == rule\.Yes)|leftMoving .*!ok|Selected .*Undecided`,
		"no event arrives during a reconciliation of the small world"},
	{`generalProblems|interestedBindings|reason|uncounted|contested|silent|o\.account != nil|maxReasons|more > 0|` +
		`reportedIn|bindingsAnswer .*union == No`,
		"it is about words"},
	{`InstallationOf .*MayMove`, "the install Placement of the small world has one slice"},
	{`isUnconfirmed|unconfirmed`, "a copy that may stay may as well be up to date, as far as the hub is known"},
	{`current|mayWrite|allHold|finding\.Problem|takesAway|mayAttempt|len\(left\) == 0`,
		"it saves a read of the token or of CRDs, or orders work"},
	{`mayBegin`, "every story begins with a slice, and some profile is always complete"},
	{`anyBound`, "no story has both a Placement and a binding that is not judged"},
	{`[gG]roup`, "the small world has no decision groups"},
	{`referring .*(served|nil)`, "slices are known from the start"},
	{`decide_layout\.go:\d+ (layoutOf|rangeOf|mayMove .l\.unlike)|MayMove .*surplus|MayMove .!p\.spans`,
		"slices that are taken for unfinished only keep a profile for longer, at most two minutes"},
	{`l == nil|l != nil`, "every Placement that is observed has a layout"},
	{`[mM]ayHide`, "its live read can only find that a cluster was chosen again after its slices lacked it"},
	{`install\.go:\d+ (installation|liveInstallation)`,
		"the install Placement of the small world has one slice that is not full, so nothing is read live"},
	{`settleAddon .*(ByPlacement|wait > 0|rest\.Answer)`,
		"no story has both an install strategy and a publishing Placement"},
	{`len\(result\.Undecided\)|references\.go.* (check|Allow|release) |askAbout`,
		"everything is reconciled at any time, whatever an event enqueues"},
}

// unexplained is the result of a clause that nothing finds, for no known reason.
const unexplained = "not found"

// reasonFor says why a clause cannot be found.
func reasonFor(c clause) string {
	place := fmt.Sprintf("%s `%s`", c.where, c.text)
	for _, reason := range reasons {
		if regexp.MustCompile(reason.clause).MatchString(place) {
			return "not found: " + reason.why
		}
	}
	return unexplained
}

// clause is what can be negated.
type clause struct {
	number int
	where  string // file, line and function
	text   string
}

func main() {
	states := flag.Int("states", 5000, "the most states to visit in each scenario")
	only := flag.String("only", "", "regular expression of the clauses to negate, by their place")
	list := flag.Bool("list", false, "only list the clauses")
	flag.Parse()
	if err := run(*states, regexp.MustCompile(*only), *list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(states int, only *regexp.Regexp, list bool) error {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	clauses, overlay, err := rewriteAll(work)
	if err != nil {
		return err
	}
	clauses = slices.DeleteFunc(clauses, func(c clause) bool { return !only.MatchString(c.where) })
	if list {
		for _, c := range clauses {
			fmt.Printf("%s `%s`\n", c.where, c.text)
		}
		return nil
	}
	binaries := map[string]string{}
	for _, c := range clauses {
		search, _ := c.search()
		if binaries[search] != "" {
			continue
		}
		binaries[search] = filepath.Join(work, strings.ReplaceAll(search, "/", "-"))
		build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binaries[search], "./"+search)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", search, err, out)
		}
		if found, took := try(binaries[search], search, "", states, 0); found != "" {
			return fmt.Errorf("without any change, %s finds after %s: %s", search, took, found)
		}
	}
	found, missed, open := 0, 0, 0
	for _, c := range clauses {
		search, stories := c.search()
		what, took := try(binaries[search], search, stories, states, c.number)
		if what == "" {
			missed++
			what = reasonFor(c)
			if what == unexplained {
				open++
			}
		} else {
			found++
		}
		fmt.Printf("| %s | `%s` | %s | %.1f |\n", c.where, strings.ReplaceAll(c.text, "|", `\|`), what, took.Seconds())
	}
	fmt.Printf("%d clauses: %d found, %d not, of these %d for no known reason\n", found+missed, found, missed, open)
	return nil
}

// search returns the search that may find a clause, and in which of its stories.
func (c clause) search() (search, stories string) {
	for _, w := range where {
		if regexp.MustCompile(w.place).MatchString(c.where + " " + c.text) {
			return w.search, w.stories
		}
	}
	panic("no search for " + c.where) // the last one matches all
}

// firstFound is how a search reports a violation.
var firstFound = regexp.MustCompile(`run\.go:\d+: (.+), after\n`)

// try runs a search with one clause negated, and returns what it finds, if anything.
func try(binary, folder, stories string, states, number int) (what string, took time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	search := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.run=^Test(Orders|Profiles)$",
		fmt.Sprintf("-orders.states=%d", states), "-orders.only="+stories, "-orders.first")
	search.Dir = folder
	search.Env = append(os.Environ(), fmt.Sprintf("ORDERS_MUTANT=%d", number))
	began := time.Now()
	out, err := search.CombinedOutput()
	took = time.Since(began)
	if err == nil {
		return "", took
	}
	if match := firstFound.FindSubmatch(out); match != nil {
		return string(match[1]), took
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "it does not end", took
	}
	return "it ends: " + lastLine(out), took
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// rewriteAll writes every target's files with switches into a folder, and returns the clauses and
// the name of the overlay.
func rewriteAll(work string) ([]clause, string, error) {
	var clauses []clause
	replace := map[string]string{}
	for i, of := range targets {
		name := ""
		for _, file := range sortedKeys(of.functions) {
			path := filepath.Join(of.folder, file)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, "", err
			}
			next, packageName, found, err := rewrite(path, text, of.functions[file], len(clauses))
			if err != nil {
				return nil, "", err
			}
			name = packageName
			clauses = append(clauses, found...)
			into := filepath.Join(work, fmt.Sprintf("%d-%s", i, file))
			if err := os.WriteFile(into, next, 0o600); err != nil { //nolint:gosec // a folder of its own
				return nil, "", err
			}
			absolute, err := filepath.Abs(path)
			if err != nil {
				return nil, "", err
			}
			replace[absolute] = into
		}
		into := filepath.Join(work, fmt.Sprintf("%d.go", i))
		body := "package " + name + "\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\n" +
			"var mutantOrders, _ = strconv.Atoi(os.Getenv(\"ORDERS_MUTANT\"))\n"
		if err := os.WriteFile(into, []byte(body), 0o600); err != nil { //nolint:gosec // the same
			return nil, "", err
		}
		absolute, err := filepath.Abs(filepath.Join(of.folder, "mutant_orders.go"))
		if err != nil {
			return nil, "", err
		}
		replace[absolute] = into
	}
	overlay := filepath.Join(work, "overlay.json")
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	return clauses, overlay, os.WriteFile(overlay, body, 0o600)
}

func sortedKeys(of map[string][]string) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// edit inserts a text. Of several at one place, that of the outer clause comes first where
// clauses begin, and last where they end.
type edit struct {
	at    int
	text  string
	order int
}

// rewrite makes each clause of some functions of a file comparable with its number.
func rewrite(path string, text []byte, functions []string, numbered int) ([]byte, string, []clause, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, "", nil, err
	}
	var clauses []clause
	var edits []edit
	missing := slices.Clone(functions)
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || function.Body == nil || functions != nil && !slices.Contains(functions, function.Name.Name) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == function.Name.Name })
		for _, expression := range clausesOf(function.Body) {
			number := numbered + len(clauses) + 1
			from, to := set.Position(expression.Pos()), set.Position(expression.End())
			size := to.Offset - from.Offset
			edits = append(edits, edit{from.Offset, "(", -size},
				edit{to.Offset, fmt.Sprintf(") != (mutantOrders == %d)", number), size - 1<<30})
			clauses = append(clauses, clause{
				number: number, where: fmt.Sprintf("%s:%d %s", strings.TrimPrefix(path, "pkg/hub/"), from.Line, function.Name.Name),
				text: strings.Join(strings.Fields(string(text[from.Offset:to.Offset])), " "),
			})
		}
	}
	if len(missing) > 0 {
		return nil, "", nil, fmt.Errorf("%s has no %s", path, strings.Join(missing, ", "))
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	var next bytes.Buffer
	at := 0
	for _, e := range edits {
		next.Write(text[at:e.at])
		next.WriteString(e.text)
		at = e.at
	}
	next.Write(text[at:])
	return next.Bytes(), file.Name.Name, clauses, nil
}

// clausesOf returns the conditions in a function, outer ones first.
func clausesOf(body *ast.BlockStmt) []ast.Expr {
	var found []ast.Expr
	add := func(expression ast.Expr) {
		if !slices.Contains(found, expression) {
			found = append(found, expression)
		}
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt:
			add(node.Cond)
		case *ast.SwitchStmt:
			if node.Tag == nil {
				for _, each := range node.Body.List {
					for _, expression := range each.(*ast.CaseClause).List {
						add(expression)
					}
				}
			}
		case *ast.ReturnStmt:
			for _, result := range node.Results {
				if isCondition(result) {
					add(result)
				}
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				for _, operand := range []ast.Expr{node.X, node.Y} {
					if inner, ok := operand.(*ast.BinaryExpr); !ok || inner.Op != node.Op {
						add(operand)
					}
				}
			}
		}
		return true
	})
	return found
}

func isCondition(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ:
			return true
		}
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}
