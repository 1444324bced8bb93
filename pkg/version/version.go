// Package version says what a program was built from. It imports nothing that the smallest
// program, the consumers' plugin, does not have anyway.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets these; see hack/build.sh. They stay empty in tests, and in programs that
// others build.
var (
	version  string
	revision string
	date     string
)

// unknown stands for what was not recorded.
const unknown = "unknown"

// Info is what a program was built from. No field is empty.
type Info struct {
	// Version is that of a release, such as v0.1.0, or one that names a commit between two.
	Version string
	// Revision is the commit.
	Revision string
	// Date is the time of the commit, as in RFC 3339. It is not the time of the build, which
	// would differ in every build of the same commit.
	Date string
	// GoVersion is the version of Go.
	GoVersion string
	// Platform is the operating system and architecture, such as linux/amd64.
	Platform string
}

// Get returns what this program was built from.
func Get() Info {
	recorded, _ := debug.ReadBuildInfo()
	return from(Info{Version: version, Revision: revision, Date: date}, recorded)
}

// from completes what the linker has set by what Go itself has recorded, which may be nil.
func from(linked Info, recorded *debug.BuildInfo) Info {
	info := linked
	info.GoVersion, info.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	if recorded != nil {
		info.Version = cmp.Or(info.Version, recorded.Main.Version)
		for _, setting := range recorded.Settings {
			switch setting.Key {
			case "vcs.revision":
				info.Revision = cmp.Or(info.Revision, setting.Value)
			case "vcs.time":
				info.Date = cmp.Or(info.Date, setting.Value)
			}
		}
	}
	info.Version = cmp.Or(info.Version, unknown)
	info.Revision = cmp.Or(info.Revision, unknown)
	info.Date = cmp.Or(info.Date, unknown)
	return info
}

// Labels are those of a metric.
func (i Info) Labels() map[string]string {
	return map[string]string{"version": i.Version, "revision": i.Revision, "goversion": i.GoVersion}
}

// String is one line with all of it.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s of %s, %s, %s)", i.Version, i.Revision, i.Date, i.GoVersion, i.Platform)
}

// AddFlag gives a command the flag --version, without a shorthand: -v is for log verbosity,
// here or in programs that this one replaces.
func AddFlag(cmd *cobra.Command) {
	cmd.Version = Get().String()
	cmd.Flags().Bool("version", false, "print the version and what it was built from")
}
