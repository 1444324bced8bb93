package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	title      = "cluster-inventory-addon"
	repository = "https://github.com/open-cluster-management-io/cluster-inventory-addon"

	// user is who the programs run as, unless a pod says otherwise; OpenShift always does.
	user = "65532"
)

var (
	// inImage are the programs in the image, each at /.
	inImage = []string{"manager", "agent", "cp-creds"}
	// imagePlatforms are those that the image is for.
	imagePlatforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
)

// annotations are those of the image, and its labels.
func (b build) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": "Manager, agent and exec plugin of the cluster inventory",
		"org.opencontainers.image.vendor":      "Open Cluster Management",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.url":         repository,
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.revision,
		"org.opencontainers.image.created":     b.created.Format(time.RFC3339),
	}
}

// writeLayout writes the image for all platforms and returns its digest.
func (b build) writeLayout(dir string) (v1.Hash, error) {
	index, err := b.index()
	if err != nil {
		return v1.Hash{}, err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	tag := map[string]string{"org.opencontainers.image.ref.name": b.version}
	if err := path.AppendIndex(index, layout.WithAnnotations(tag)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// writeArchive writes the image for the machine's architecture, with other programs in it if
// some are named.
func (b build) writeArchive(file, image string, programs ...string) error {
	if len(programs) == 0 {
		programs = inImage
	}
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	made, err := b.image(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, programs)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, made)
}

// runnable is an image and no other artifact. Without it, the library would name a type of
// artifact in the index.
type runnable struct{ v1.Image }

func (runnable) ArtifactType() (string, error) { return "", nil }

func (b build) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range imagePlatforms {
		image, err := b.image(platform, inImage)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: runnable{image}, Descriptor: v1.Descriptor{Platform: &platform},
		})
	}
	annotated, ok := mutate.Annotations(index, b.annotations()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("an index with annotations is a %T", annotated)
	}
	return annotated, nil
}

// image has no shell and no libraries: the programs are static.
func (b build) image(platform v1.Platform, programs []string) (v1.Image, error) {
	base, err := b.layer("what an operating system has", systemFiles())
	if err != nil {
		return nil, err
	}
	additions := []mutate.Addendum{base}
	for _, program := range programs {
		content, err := os.ReadFile(b.program(platform.OS, platform.Architecture, program))
		if err != nil {
			return nil, err
		}
		addition, err := b.layer(program, []file{{name: program, mode: 0o755, content: content}})
		if err != nil {
			return nil, err
		}
		additions = append(additions, addition)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, additions...); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Created = v1.Time{Time: b.created}
	config.Config.User = user + ":" + user
	config.Config.Labels = b.annotations()
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, b.annotations()).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with annotations is a %T", annotated)
	}
	return annotated, nil
}

func (b build) program(goos, arch, program string) string {
	return filepath.Join(b.programs, goos+"_"+arch, program)
}

func (b build) layer(what string, files []file) (mutate.Addendum, error) {
	content, err := tarOf(files, b.created)
	if err != nil {
		return mutate.Addendum{}, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithCompressedCaching,
	)
	return mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: b.created}, CreatedBy: "make release", Comment: what},
	}, err
}

// systemFiles are the user, and the CA certificates by which an agent trusts a hub whose
// kubeconfig names none.
func systemFiles() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say that a root is good for some certificates only
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return []file{
		{name: "etc/passwd", mode: 0o644, content: []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, content: []byte("nonroot:x:" + user + ":\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
	}
}
