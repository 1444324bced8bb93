package node

import (
	"fmt"
	"os"
	"strings"
)

// repository strips tag and digest from an image reference.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// imageDir returns the directory that stands for an image.
func imageDir(images map[string]string, image string) (string, error) {
	dir, known := images[repository(image)]
	if !known {
		return "", fmt.Errorf("the process node has no image %q (asked for as %q)", repository(image), image)
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
