package node

import (
	"fmt"
	"os"
	"strings"
)

// reference splits an image reference into repository and tag, which may be empty. A digest
// is dropped.
func reference(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		return image[:colon], image[colon+1:]
	}
	return image, ""
}

// repository strips tag and digest from an image reference.
func repository(image string) string {
	repository, _ := reference(image)
	return repository
}

// TaggedImage is the directory that stands for one tag of the image for which dir stands,
// if it exists.
func TaggedImage(dir, tag string) string { return dir + "." + tag }

// imageDir returns the directory that stands for an image.
func imageDir(images map[string]string, image string) (string, error) {
	repository, tag := reference(image)
	dir, known := images[repository]
	if !known {
		return "", fmt.Errorf("the process node has no image %q (asked for as %q)", repository, image)
	}
	tagged := TaggedImage(dir, tag)
	if _, err := os.Lstat(tagged); tag != "" && err == nil { // also a link to what is gone
		dir = tagged
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", image, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("image %q: %s is not a directory", image, dir)
	}
	return dir, nil
}
