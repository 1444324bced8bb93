// Command mutants shows that the search over all orders of a small world (internal/apitest/orders)
// finds it when a clause of a decision says the opposite. It negates, one at a time, each
// condition of an if, each case of a switch without a tag, each operand of && and ||, and each
// returned condition of the functions below, runs the searches, and prints a table of what found
// each.
//
// All clauses are compiled at once (go build -overlay). The searches first record which stories evaluate which
// clause, and then try each clause in those. Results are kept in files, so that a run continues where the last
// one ended, unless the source has changed since.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	negated "open-cluster-management.io/cluster-inventory-addon/internal/apitest/orders/clause"
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

	called = "open-cluster-management.io/cluster-inventory-addon/internal/apitest/orders/clause"
)

var targets = []target{
	{
		folder: "pkg/hub/selection/rule", functions: map[string][]string{
			"decide.go":         nil,
			"decide_choice.go":  nil,
			"decide_install.go": nil,
			"decide_layout.go":  nil,
			"decide_settle.go":  nil,
			"objects.go":        {"requiresPlacement", "Publishes", "IsOlder", "IsOurs", "IsMarked", "IsExclusive", "IsGrouped"},
		},
	},
	{
		folder: "pkg/hub/selection", functions: map[string][]string{
			"changes.go": {"track", "allow"},
			"choice.go":  {"Choice", "Leaving", "leftMoving"},
			"live.go": {
				"confirm", "isPieced", "confirmDefinitions", "recheckNo", "ConfirmYes", "recheckYes", "readRegistration",
				"liveInstalls",
			},
			"observe.go": {"observeAbsence"},
			"pair.go":    {"Observe", "Settle", "Selected", "settle", "remember"},
		},
	},
	{
		folder: "pkg/hub/inventory/profiles", functions: map[string][]string{"decide.go": {"NextStep", "IsTerminating"}},
	},
	{
		folder: credentials, functions: map[string][]string{
			"desired.go": nil,
			"observe.go": {"observeDefinition", "losing", "observeTarget", "rivals", "wantedNamespaces"},
			"apply.go":   {"mayCopy", "selectedLive", "liveProfile"},
		},
	},
	{
		folder: decisions, functions: map[string][]string{
			"desired_clusters.go": nil,
			"reconciler.go":       {"catchUp", "plan", "movesOut"},
			"references.go":       {"Refer", "referring", "begin", "check", "askAbout", "follow", "mayReferToAny"},
		},
	},
}

// searches are the packages whose stories are searched, in this order.
var searches = []string{profiles, decisions, credentials}

// reason says why the searches cannot find some clauses.
type reason struct {
	clause string // regular expression of their places and texts
	kind   string
	why    string
}

// The kinds of reasons.
const (
	absent  = "the small world lacks it"
	wording = "it only words a message"
	cheaper = "it only saves time, reads or writes"
	implied = "another condition says the same, or the result is the same in the end"
)

var reasons = []reason{
	{`[lL]agging|[lL]ags`, absent, "no cache is older than the process"},
	{`IsOlder`, absent, "CRDs are not all recreated together; otherwise their ages show a restore"},
	{`numberOf`, absent, "the names of fewer than ten slices sort like their numbers"},
	{`InInventory|NextStep .*selected\.(Member|Untrusted)`, absent,
		"it decides about the content of profiles, and for how long an absence is remembered"},
	{`Choosing|Hiding|hiding|[mM]ayHide|ReadSlices|live\.Slices|leftMoving .left > 0`, absent,
		"no cluster is chosen again between the end of its absence and the live read of its slices"},
	{`leftMoving .err != nil| settle .*(err|wait|memory\.Settling|IsUnchosen)|leftMoving .*!ok|Selected .*Undecided|` +
		` recheckYes .(!kube\.IsNewer|now == before)`, absent,
		"no event arrives during a reconciliation, and no read fails"},
	{` decisions .*(m\.Vanished|AbsenceCounts)`, absent,
		"no Placement vanishes for less than ten seconds while another one is left in its namespace"},
	{`liveInstalls|ReadInstalls|install\.hides|live\.Installs|m\.Uninstalled, longest| addon .!install\.MayReturn.$|` +
		` Of .(decided\.hides|p != nil)`, absent,
		"the slices of the install strategy's Placement are not full, so nothing is read live"},
	{`draining|paused|o\.unknown|RequireTarget|named\.Is|ErrProfilesUnserved|IsUncached|isNamespace|MaxNameBytes|t\.err`,
		absent, "no cleanup, no second syncer, no account without namespaces, and no bad name or read"},
	{`observeDefinition .\(?!?\(?(isIncomplete|o\.restoring|acting|err != nil|state|len\(cached\))`, absent,
		"no cache is older than the process, and no read fails"},
	{`observeTarget .(isThere|acting)`, absent, "the rival has no copy whose withdrawal must wait"},
	{`Selected .result\.Answer != rule\.No`, cheaper,
		"it only says when to look again; of an API that is not served, nothing is selected before"},
	{`served|d\.started|Refer .!known|referring .err == nil`, absent,
		"PlacementDecisions are served and known from the start"},
	{`mayAttempt|mayHold|takesAway|isFound|unconfirmed skips|!r\.unconfirmed`, cheaper,
		"it orders work, or repeats an attempt that failed"},
	{`countedEnd|found\.Next`, absent, "no token expires"},
	{`grantsOf .(mayCopy|exists.$|d\.action == maintain|p\.token == )`, absent,
		"a right that is missing is granted again before it is used"},
	{`movesOut`, absent, "no Placement has two slices of references"},
	{`ChosenClusters .*Index`, absent, "no cluster is in two groups"},
	{`Choice .(err != nil|o\.Placement == nil|live != |!choice\.Going)`, absent,
		"no cache is older than the process; no read fails"},

	{`generalProblems|interestedBindings|decideFinally .found\.Problem|reason|uncounted|contested|silent|` +
		`o\.account != nil|maxReasons|more > 0|reportedIn|bindingsAnswer .*union == No`, wording,
		"conditions and events mention it"},

	{`decideFinally .!d\.needsCopy|current|mayWrite|allHold|hasCopies|finding\.Problem|len\(left\) == 0`, cheaper,
		"without it, the token or CRDs are read more often"},
	{`Settle .(len\(result\.Undecided\)|left > 0)|references\.go.* (check|follow|askAbout) |AnyReferable|` +
		`changes\.go.* (track|allow) .before`,
		cheaper, "everything is reconciled at any time, whatever an event enqueues"},

	{`confirm .err == nil|confirm .slices`, implied, "a deletion that is not recorded is confirmed by another read"},
	{`changes\.go.* track .state`, implied,
		"the reconciliation that tracks another profile also says whether that may be referred to"},
	{`isUnconfirmed|unconfirmed`, implied, "a copy that may stay may as well be up to date, as far as the hub is known"},
	{`decide_layout\.go:\d+ (layoutOf|rangeOf|mayMove .l\.unlike)|MayMove .*surplus|MayMove .!p\.spans|IsGrouped`,
		implied, "slices that are taken for unfinished only keep a profile for longer, at most two minutes"},
	{`confirmDefinitions .result\.Going`, implied,
		"while objects may be restored, the rule itself says Unknown, and the cache was filled from another CRD"},
	{`needsToken|isPublished|isUnusable`, implied,
		"a right that is granted too early is withdrawn again, and rights are checked only in the end"},
	{`grantsOf .p\.token != refused`, implied,
		"the copies of a refused token are withdrawn, and so is the right to them"},
	{`observeAbsence .!rule\.IsUnchosen`, absent, "no addon goes while the CRD of Placements is restored"},
	{`IsUnchosen .r\.ByAddon`, absent, "no cluster is losing its addon while it is between two slices"},
	{`Selected .result\.Answer == rule\.Yes`, implied,
		"a copy is created only beside a profile, whose creation waits for Placements that have just vanished"},
	{`Selected .(err == nil|result\.Answer != rule\.Yes|r\.changes|undecided)`, cheaper,
		"everything is reconciled at any time, whatever an event enqueues"},
	{` addon .*(ByPlacement|Wait > 0|rest\.Answer|Result\.Answer)`, implied,
		"a profile only stays for longer, at most two minutes: the install strategy may create the addon again"},
	{`Choice .choice\.Answer != rule\.No`, implied,
		"a deletion that is recorded too early is confirmed by another read"},
	{`Observe .*rule\.Unknown`, implied, "the event of the slice that names a cluster ends its absence, too"},
}

// unexplained is the kind of a clause that nothing finds, for no known reason.
const unexplained = "unexplained"

// reasonFor says why a clause cannot be found.
func reasonFor(c clause) reason {
	place := fmt.Sprintf("%s `%s`", c.where, c.text)
	for _, r := range reasons {
		if regexp.MustCompile(r.clause).MatchString(place) {
			return r
		}
	}
	return reason{kind: unexplained}
}

// clause is what can be negated.
type clause struct {
	number int
	where  string // file, line and function
	text   string
}

func main() {
	states := flag.Int("states", 300, "the most states to visit in each scenario")
	only := flag.String("only", "", "regular expression of the clauses to negate, by their place")
	list := flag.Bool("list", false, "only list the clauses")
	folder := flag.String("results", "bin/mutants", "where results are kept, which are used again for the same program")
	flag.Parse()
	if err := run(*states, regexp.MustCompile(*only), *list, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(states int, only *regexp.Regexp, list bool, folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	clauses, overlay, err := rewriteAll(folder)
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
	results, left := map[int]negated.Trial{}, clauses
	for _, search := range searches {
		trials, err := try(search, overlay, folder, states, left)
		if err != nil {
			return err
		}
		for number, trial := range trials {
			trial.Stories += results[number].Stories
			trial.Seconds += results[number].Seconds
			results[number] = trial
		}
		left = slices.DeleteFunc(slices.Clone(left), func(c clause) bool { return results[c.number].Found != "" })
	}
	return report(clauses, results, only.String() == "")
}

// report prints a table of what was found, and how often what.
func report(clauses []clause, results map[int]negated.Trial, isWhole bool) error {
	counts, used := map[string]int{}, map[string]bool{}
	for _, c := range clauses {
		trial := results[c.number]
		what, kind := trial.Found, "found"
		if what == "" {
			r := reasonFor(c)
			used[r.clause] = true
			what, kind = "not found: "+r.why, "not found: "+r.kind
			if trial.Stories == 0 {
				what = "not reached: " + r.why
			}
		} else {
			what += " (" + trial.Story + ")"
		}
		counts[kind]++
		fmt.Printf("| %s | `%s` | %s | %d | %.1f |\n",
			c.where, strings.ReplaceAll(c.text, "|", `\|`), what, trial.Stories, trial.Seconds)
	}
	for _, kind := range sortedKeys(counts) {
		fmt.Printf("%d of %d clauses: %s\n", counts[kind], len(clauses), kind)
	}
	for _, r := range reasons {
		if !used[r.clause] && isWhole {
			fmt.Printf("no clause needs the reason for %s\n", r.clause)
		}
	}
	if n := counts["not found: "+unexplained]; n > 0 {
		return fmt.Errorf("%d clauses are not found, for no known reason", n)
	}
	return nil
}

// try negates clauses in the searches of a package, unless the results are known.
func try(search, overlay, folder string, states int, clauses []clause) (map[int]negated.Trial, error) {
	binary := filepath.Join(folder, strings.ReplaceAll(search, "/", "-"))
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, "./"+search)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s: %w\n%s", search, err, out)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(fmt.Sprintf("%s-%x-%d.json", binary, sha256.Sum256(program), states))
	if err != nil {
		return nil, err
	}
	for {
		trials, begun, err := known(absolute)
		if err != nil {
			return nil, err
		}
		var left []string
		for _, c := range clauses {
			if _, ok := trials[c.number]; !ok {
				left = append(left, strconv.Itoa(c.number))
			}
		}
		if len(left) == 0 {
			return trials, nil
		}
		fmt.Printf("%s: %d of %d clauses are left\n", search, len(left), len(clauses))
		command := exec.Command("./"+filepath.Base(binary), "-test.timeout=0", "-test.run=^Test(Orders|Profiles)$",
			fmt.Sprintf("-orders.states=%d", states), "-orders.results="+absolute,
			"-orders.negate="+strings.Join(left, ","))
		command.Dir = folder
		command.Env = append(os.Environ(), "GOGC=400")
		var failure bytes.Buffer
		command.Stdout, command.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &failure)
		failed := command.Run()
		if failed == nil {
			continue
		}
		before := begun
		if trials, begun, err = known(absolute); err != nil {
			return nil, err
		}
		if _, ended := trials[begun]; begun == before || begun == 0 {
			return nil, fmt.Errorf("searching %s: %w", search, failed)
		} else if !ended {
			ends := negated.Trial{Clause: begun, Stories: 1, Found: "it ends: " + lastLine(failure.Bytes())}
			if err := keep(absolute, ends); err != nil {
				return nil, err
			}
		}
	}
}

// known reads results, and which clause was begun last.
func known(file string) (trials map[int]negated.Trial, begun int, err error) {
	trials = map[int]negated.Trial{}
	text, err := os.ReadFile(file) //nolint:gosec // the tool's own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var trial negated.Trial
		if err := json.Unmarshal([]byte(line), &trial); err != nil {
			return nil, 0, fmt.Errorf("reading %s: %w", file, err)
		}
		if trial.Begun {
			begun = trial.Clause
		} else {
			trials[trial.Clause] = trial
		}
	}
	return trials, begun, nil
}

func keep(file string, trial negated.Trial) error {
	into, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the tool's own
	if err != nil {
		return err
	}
	line, err := json.Marshal(trial)
	if err != nil {
		return err
	}
	if _, err := into.Write(append(line, '\n')); err != nil {
		return err
	}
	return into.Close()
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
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
		numbered := 1000 * i // so that those of a package do not depend on others
		for _, file := range sortedKeys(of.functions) {
			path := filepath.Join(of.folder, file)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, "", err
			}
			next, found, err := rewrite(path, text, of.functions[file], numbered)
			if err != nil {
				return nil, "", err
			}
			numbered += len(found)
			clauses = append(clauses, found...)
			into := filepath.Join(work, fmt.Sprintf("_%d-%s", i, file)) // other tools ignore such a file
			if err := os.WriteFile(into, next, 0o600); err != nil {     //nolint:gosec // a folder of its own
				return nil, "", err
			}
			absolute, err := filepath.Abs(path)
			if err != nil {
				return nil, "", err
			}
			replace[absolute] = into
		}
	}
	overlay := filepath.Join(work, "overlay.json")
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	return clauses, overlay, os.WriteFile(overlay, body, 0o600)
}

func sortedKeys[V any](of map[string]V) []string {
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
func rewrite(path string, text []byte, functions []string, numbered int) ([]byte, []clause, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
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
			edits = append(edits, edit{from.Offset, fmt.Sprintf("negatedClause.Is(%d, ", number), -size},
				edit{to.Offset, ")", size - 1<<30})
			clauses = append(clauses, clause{
				number: number, where: fmt.Sprintf("%s:%d %s", strings.TrimPrefix(path, "pkg/hub/"), from.Line, function.Name.Name),
				text: strings.Join(strings.Fields(string(text[from.Offset:to.Offset])), " "),
			})
		}
	}
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("%s has no %s", path, strings.Join(missing, ", "))
	}
	name := set.Position(file.Name.End())
	edits = append(edits, edit{name.Offset, "; import negatedClause " + strconv.Quote(called), 0})
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
	return next.Bytes(), clauses, nil
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
