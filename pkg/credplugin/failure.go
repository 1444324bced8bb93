package credplugin

import (
	"fmt"
	"strings"
	"unicode"
)

// Exit codes of the process. A client shows its user nothing but the code, so
// each stands for one thing to do; docs/cp-creds.md says which.
const (
	// ExitOK: the credential is on stdout.
	ExitOK = 0
	// ExitFailed: any failure without its own code.
	ExitFailed = 1
	// ExitUsage: the command line or $NAMESPACE is wrong.
	ExitUsage = 2
	// ExitExecInfo: the client did not say which cluster, or not in a supported
	// form.
	ExitExecInfo = 3
	// ExitNoConfig: no configuration says where the hub's API server is.
	ExitNoConfig = 4
	// ExitNoSecret: no token was copied to the namespace.
	ExitNoSecret = 5
	// ExitForbidden: the consumer may not read the Secret.
	ExitForbidden = 6
	// ExitUnusable: the Secret holds no token, or another account's.
	ExitUnusable = 7
	// ExitExpired: the token has expired.
	ExitExpired = 8
	// ExitUnreachable: the hub's API server did not respond, or responded with an
	// error.
	ExitUnreachable = 9
)

// Failure is an error with the process's exit code.
type Failure struct {
	Code int
	Text string
}

func (f *Failure) Error() string { return f.Text }

// failf returns a Failure whose text is one printable line, regardless of its arguments.
func failf(code int, format string, args ...any) *Failure {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return &Failure{Code: code, Text: strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, line)}
}
