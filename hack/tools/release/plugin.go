package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

const plugin = "kubectl-inventory"

// platform is one that the plugin is for.
type platform struct{ os, arch string }

var pluginPlatforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// writePlugins writes one archive for each platform, and the manifest that names them with
// their checksums.
func (b build) writePlugins(root, dir string) error {
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range pluginPlatforms {
		if err := b.writePlugin(dir, p, license); err != nil {
			return err
		}
	}
	manifest, err := b.krewManifest(filepath.Join(root, ".krew.yaml"), dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "krew.yaml"), manifest, 0o644) //nolint:gosec // it is published
}

func (b build) writePlugin(dir string, p platform, license []byte) error {
	program := plugin
	if p.os == "windows" {
		program += ".exe"
	}
	content, err := os.ReadFile(b.program(p.os, p.arch, program))
	if err != nil {
		return err
	}
	files := []file{{name: "LICENSE", mode: 0o644, content: license}, {name: program, mode: 0o755, content: content}}
	archive := filepath.Join(dir, plugin+"_"+b.version+"_"+p.os+"_"+p.arch)
	if p.os != "windows" {
		return b.writeTarGz(archive+".tar.gz", files)
	}
	zipped, err := zipOf(files, b.created)
	if err != nil {
		return err
	}
	return os.WriteFile(archive+".zip", zipped, 0o644) //nolint:gosec // it is published
}

// krewManifest fills in the template, with the function of krew-release-bot.
func (b build) krewManifest(file, dir string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	addURIAndSha := func(uri, tag string) (string, error) {
		uri = strings.ReplaceAll(uri, "{{ .TagName }}", tag)
		archive, err := os.ReadFile(filepath.Join(dir, path.Base(uri)))
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(archive)
		return fmt.Sprintf("uri: %s\n    sha256: %s", uri, hex.EncodeToString(sum[:])), nil
	}
	manifest, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": addURIAndSha}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = manifest.Execute(&out, map[string]string{"TagName": b.version})
	// What is left are comments for people who edit the template.
	content := out.Bytes()
	if _, rest, found := bytes.Cut(content, []byte("\napiVersion:")); found {
		content = append([]byte("apiVersion:"), rest...)
	}
	return content, err
}
