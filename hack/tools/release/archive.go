package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// file is one in an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarOf has the files and the folders they are in, all from the same time and root's.
func tarOf(files []file, changed time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	seen := map[string]bool{".": true}
	for _, f := range files {
		if err := writeFolders(w, path.Dir(f.name), seen, changed); err != nil {
			return nil, err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: changed,
			Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// writeFolders adds a folder and those it is in, unless they have been seen.
func writeFolders(w *tar.Writer, folder string, seen map[string]bool, changed time.Time) error {
	if seen[folder] {
		return nil
	}
	seen[folder] = true
	if err := writeFolders(w, path.Dir(folder), seen, changed); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: changed, Format: tar.FormatPAX,
	})
}

func gzipped(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

func zipOf(files []file, changed time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: changed}
		header.SetMode(os.FileMode(f.mode)) //nolint:gosec // a mode has twelve bits
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// sameTimes rewrites a .tgz with the release's time on every file: Helm puts the present time
// there.
func (b build) sameTimes(archive string) error {
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	var files []file
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if header.Typeflag == tar.TypeDir { // comes with its files
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		files = append(files, file{name: header.Name, mode: header.Mode, content: content})
	}
	return b.writeTarGz(archive, files)
}

func (b build) writeTarGz(archive string, files []file) error {
	plain, err := tarOf(files, b.created)
	if err != nil {
		return err
	}
	packed, err := gzipped(plain)
	if err != nil {
		return err
	}
	return os.WriteFile(archive, packed, 0o644) //nolint:gosec // published files are readable by all
}
