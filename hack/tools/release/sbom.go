package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
)

// writeSBOMs writes the software bill of materials of each program, as CycloneDX: the modules
// that it was linked from, as the linker has recorded them in it.
func (b build) writeSBOMs(dir string) error {
	programs, err := filepath.Glob(filepath.Join(b.programs, "*_*", "*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // published files are readable by all
		return err
	}
	slices.Sort(programs)
	for _, program := range programs {
		platform, name := filepath.Base(filepath.Dir(program)), strings.TrimSuffix(filepath.Base(program), ".exe")
		if err := b.writeSBOM(program, filepath.Join(dir, name+"_"+platform+".cdx.json")); err != nil {
			return err
		}
	}
	return nil
}

func (b build) writeSBOM(program, to string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	generator, err := bin.NewGenerator(
		program, bin.WithLogger(zerolog.Nop()), bin.WithIncludeStdlib(true), bin.WithVersionOverride(b.version),
	)
	if err != nil {
		return err
	}
	list, err := generator.Generate()
	if err != nil {
		return err
	}
	// Both the same in every build of the commit.
	sum := sha256.Sum256(content)
	list.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).URN()
	list.Metadata.Timestamp = b.created.Format(time.RFC3339)
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(list, cyclonedx.SpecVersion1_6); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
