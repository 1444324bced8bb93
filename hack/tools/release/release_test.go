package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// fixture is a build whose programs contain only their names and platforms.
func fixture(t *testing.T) build {
	t.Helper()
	b := build{
		version: "v1.2.3", revision: "0123456789ab", created: time.Unix(1000000000, 0).UTC(), programs: t.TempDir(),
	}
	for _, p := range pluginPlatforms {
		for _, program := range append([]string{plugin, plugin + ".exe"}, inImage...) {
			write(t, b.program(p.os, p.arch, program), []byte(program+" for "+p.os+"/"+p.arch))
		}
	}
	return b
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, content, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func layoutOf(t *testing.T, b build) (v1.ImageIndex, v1.Hash) {
	t.Helper()
	dir := t.TempDir()
	digest, err := b.writeLayout(dir)
	must(t, err)
	written, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	entries, err := written.IndexManifest()
	must(t, err)
	if len(entries.Manifests) != 1 || entries.Manifests[0].Digest != digest ||
		entries.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != b.version {
		t.Fatalf("the layout has %+v, want %s alone", entries.Manifests, digest)
	}
	index, err := written.ImageIndex(digest)
	must(t, err)
	return index, digest
}

// The digest is what users pin and signatures name: it depends on the programs and the commit,
// and on nothing else.
func TestImageHasTheSameDigestWhereverItIsMade(t *testing.T) {
	_, first := layoutOf(t, fixture(t))
	if _, again := layoutOf(t, fixture(t)); again != first {
		t.Errorf("in another folder, the digest is %s, not %s", again, first)
	}
	other := fixture(t)
	write(t, other.program("linux", "arm64", "agent"), []byte("changed"))
	if _, changed := layoutOf(t, other); changed == first {
		t.Error("another program leaves the digest as it is")
	}
	other = fixture(t)
	other.created = other.created.Add(time.Second)
	if _, changed := layoutOf(t, other); changed == first {
		t.Error("another commit leaves the digest as it is")
	}
}

func TestImage(t *testing.T) {
	b := fixture(t)
	index, _ := layoutOf(t, b)
	must(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	must(t, err)
	if diff := cmp.Diff(b.annotations(), manifest.Annotations); diff != "" || manifest.MediaType != types.OCIImageIndex {
		t.Errorf("%s with annotations (-want +got):\n%s", manifest.MediaType, diff)
	}
	var platforms []string
	for _, entry := range manifest.Manifests {
		platforms = append(platforms, entry.Platform.String())
		if entry.ArtifactType != "" {
			t.Errorf("%s is an artifact of the type %s", entry.Platform, entry.ArtifactType)
		}
		image, err := index.Image(entry.Digest)
		must(t, err)
		t.Run(entry.Platform.Architecture, func(t *testing.T) { checkImage(t, b, image, entry.Platform.Architecture) })
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func checkImage(t *testing.T, b build, image v1.Image, arch string) {
	t.Helper()
	manifest, err := image.Manifest()
	must(t, err)
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON {
		t.Errorf("media types %s and %s", manifest.MediaType, manifest.Config.MediaType)
	}
	if diff := cmp.Diff(b.annotations(), manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	config, err := image.ConfigFile()
	must(t, err)
	want := v1.Config{User: "65532:65532", Labels: b.annotations()}
	if diff := cmp.Diff(want, config.Config); diff != "" || config.OS != "linux" || config.Architecture != arch ||
		!config.Created.Equal(b.created) {
		t.Errorf("%s/%s of %s, configuration (-want +got):\n%s", config.OS, config.Architecture, config.Created, diff)
	}
	content := map[string]string{}
	modes := map[string]int64{}
	for reader := tar.NewReader(mutate.Extract(image)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		text, err := io.ReadAll(reader)
		must(t, err)
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(b.created) {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		content[header.Name], modes[header.Name] = string(text), header.Mode
	}
	wantModes := map[string]int64{
		"etc": 0o755, "etc/passwd": 0o644, "etc/group": 0o644, "etc/ssl": 0o755, "etc/ssl/certs": 0o755,
		"etc/ssl/certs/ca-certificates.crt": 0o644, "manager": 0o755, "agent": 0o755, "cp-creds": 0o755,
	}
	if diff := cmp.Diff(wantModes, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, program := range inImage {
		if want := program + " for linux/" + arch; content[program] != want {
			t.Errorf("%s is %q", program, content[program])
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(content["etc/ssl/certs/ca-certificates.crt"])) {
		t.Error("the image has no CA certificates")
	}
}

// What kind loads is the image of a release, for this machine's architecture.
func TestArchive(t *testing.T) {
	b := fixture(t)
	file := filepath.Join(t.TempDir(), "image.tar")
	must(t, b.writeArchive(file, "example.com/cluster-inventory-addon:dev"))
	tag, err := name.NewTag("example.com/cluster-inventory-addon:dev")
	must(t, err)
	image, err := tarball.ImageFromPath(file, &tag)
	must(t, err)
	must(t, validate.Image(image))
	if err := b.writeArchive(file, "no image"); err == nil {
		t.Error("it takes any name for an image's")
	}
}

// This test's own program has a record of its modules, as all programs that Go builds.
func TestSBOMs(t *testing.T) {
	b := fixture(t)
	b.programs = t.TempDir()
	self, err := os.Executable()
	must(t, err)
	content, err := os.ReadFile(self)
	must(t, err)
	write(t, b.program("linux", "amd64", "manager"), content)
	lists := func() string {
		dir := t.TempDir()
		must(t, b.writeSBOMs(dir))
		text, err := os.ReadFile(filepath.Join(dir, "manager_linux_amd64.cdx.json"))
		must(t, err)
		return string(text)
	}
	text := lists()
	if again := lists(); again != text {
		t.Error("another list of the same program is another one")
	}
	var list struct {
		BOMFormat    string
		SerialNumber string
		Metadata     struct {
			Timestamp string
			Component struct{ Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	must(t, json.Unmarshal([]byte(text), &list))
	if list.BOMFormat != "CycloneDX" || !strings.HasPrefix(list.SerialNumber, "urn:uuid:") ||
		list.Metadata.Timestamp != "2001-09-09T01:46:40Z" || list.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("the list begins with %+v", list.Metadata)
	}
	found := map[string]string{}
	for _, component := range list.Components {
		found[component.Name] = component.PURL
	}
	const module = "github.com/google/go-containerregistry"
	if !strings.HasPrefix(found[module], "pkg:golang/"+module+"@v") || found["std"] == "" {
		t.Errorf("modules: %v", found)
	}
	write(t, b.program("linux", "amd64", "agent"), []byte("not a program"))
	if err := b.writeSBOMs(t.TempDir()); err == nil {
		t.Error("what Go has not built has an SBOM")
	}
}

func TestPlugins(t *testing.T) {
	b := fixture(t)
	dir := t.TempDir()
	must(t, b.writePlugins(root, dir))
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	must(t, err)
	manifest, err := os.ReadFile(filepath.Join(dir, "krew.yaml"))
	must(t, err)
	var krew struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	must(t, yaml.Unmarshal(manifest, &krew))
	if len(krew.Spec.Platforms) != len(pluginPlatforms) || krew.Spec.Version != "v1.2.3" ||
		!strings.HasPrefix(string(manifest), "apiVersion: ") {
		t.Fatalf("manifest:\n%s", manifest)
	}
	for _, p := range krew.Spec.Platforms {
		goos, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		archive, err := os.ReadFile(filepath.Join(dir, path.Base(p.URI)))
		must(t, err)
		if sum := sha256.Sum256(archive); p.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s/%s: checksum %s", goos, arch, p.SHA256)
		}
		if !strings.Contains(p.URI, "/download/v1.2.3/kubectl-inventory_v1.2.3_"+goos+"_"+arch+".") {
			t.Errorf("%s/%s: at %s", goos, arch, p.URI)
		}
		want := map[string]string{"LICENSE": string(license), p.Bin: p.Bin + " for " + goos + "/" + arch}
		if diff := cmp.Diff(want, unpack(t, p.URI, archive)); diff != "" {
			t.Errorf("%s/%s (-want +got):\n%s", goos, arch, diff)
		}
	}
	again := t.TempDir()
	must(t, b.writePlugins(root, again))
	if repeated, err := os.ReadFile(filepath.Join(again, "krew.yaml")); err != nil || !bytes.Equal(repeated, manifest) {
		t.Errorf("the same programs have other checksums (%v):\n%s", err, repeated)
	}
}

func unpack(t *testing.T, name string, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	if strings.HasSuffix(name, ".zip") {
		reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		must(t, err)
		for _, entry := range reader.File {
			content, err := entry.Open()
			must(t, err)
			text, err := io.ReadAll(content)
			must(t, err)
			files[entry.Name] = string(text)
		}
		return files
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(reader)
		must(t, err)
		files[header.Name] = string(text)
	}
}

// Helm packages a chart with the time at which it does so.
func TestSameTimes(t *testing.T) {
	b := fixture(t)
	packaged := func(at time.Time) string {
		archive := filepath.Join(t.TempDir(), "chart.tgz")
		other := b
		other.created = at
		must(t, other.writeTarGz(archive, []file{{name: "chart/Chart.yaml", mode: 0o644, content: []byte("name: chart\n")}}))
		must(t, b.sameTimes(archive))
		content, err := os.ReadFile(archive)
		must(t, err)
		return string(content)
	}
	first := packaged(time.Unix(1, 0))
	if second := packaged(time.Unix(2, 0)); second != first {
		t.Error("two packages of the same chart differ")
	}
	if diff := cmp.Diff(map[string]string{"chart/": "", "chart/Chart.yaml": "name: chart\n"}, unpack(t, "chart.tgz", []byte(first))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCommandLine(t *testing.T) {
	known := []string{"-version=v1", "-revision=abc", "-created=1"}
	for name, args := range map[string][]string{
		"no command":         known,
		"an unknown command": append(known, "sing"),
		"no folder to write": append(known, "layout"),
		"no programs":        append(known, "-programs="+t.TempDir(), "layout", t.TempDir()),
		"no time":            {"-version=v1", "-revision=abc", "-created=", "layout", t.TempDir()},
		"no version":         {"-version=", "-revision=", "-created=1", "layout", t.TempDir()},
	} {
		if err := run(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
