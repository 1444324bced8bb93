// Command release makes what a release consists of out of programs that hack/release.sh has
// built: the image, its SBOMs and the archives of the kubectl plugin. The same
// programs always give the same bytes.
//
// It expects the programs in DIR/<os>_<arch>/.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// build is what everything in a release is made from.
type build struct {
	version, revision string
	created           time.Time
	// programs is the folder that has one folder for each platform.
	programs string
}

const usage = `usage: release [flags] COMMAND
  layout DIR          write the image for all platforms as an OCI layout, and print its digest
  archive FILE IMAGE [PROGRAM...]
                      write the image for this machine as IMAGE, for "docker load" or kind; with
                      other programs, if some are named
  sbom DIR            write the SBOMs of all programs
  plugins DIR         write the archives of the kubectl plugin, and the manifest for krew
  same-times FILE     replace the times in a .tgz that another program wrote`

func run(args []string) error {
	b := build{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(flags.Output(), usage); flags.PrintDefaults() }
	flags.StringVar(&b.version, "version", os.Getenv("VERSION"), "version of the release")
	flags.StringVar(&b.revision, "revision", os.Getenv("COMMIT"), "its commit")
	created := flags.String("created", os.Getenv("SOURCE_DATE_EPOCH"), "time of the commit, in seconds since 1970")
	flags.StringVar(&b.programs, "programs", "bin/programs", "where the programs are")
	root := flags.String("root", ".", "root of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(*created, 10, 64)
	if err != nil || b.version == "" || b.revision == "" {
		return errors.New("-version, -revision and -created must be set; " +
			"without git, by VERSION, COMMIT and SOURCE_DATE_EPOCH")
	}
	b.created = time.Unix(seconds, 0).UTC()
	switch command, rest := flags.Arg(0), flags.Args(); {
	case command == "layout" && len(rest) == 2:
		digest, err := b.writeLayout(rest[1])
		if err == nil {
			fmt.Println(digest)
		}
		return err
	case command == "archive" && len(rest) >= 3:
		return b.writeArchive(rest[1], rest[2], rest[3:]...)
	case command == "sbom" && len(rest) == 2:
		return b.writeSBOMs(rest[1])
	case command == "plugins" && len(rest) == 2:
		return b.writePlugins(*root, rest[1])
	case command == "same-times" && len(rest) == 2:
		return b.sameTimes(rest[1])
	}
	return errors.New(usage)
}
