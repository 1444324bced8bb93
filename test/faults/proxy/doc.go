// Package proxy stands between one program and an API server: it records what the program
// writes and what its watches tell it, and injects one fault at a time.
//
// It is net/http/httputil's reverse proxy behind TLS. What it adds: writes get a Key by which
// another run finds the same one; streams of watches are decoded event by event; and answers
// are JSON, because requests for protobuf are changed to requests for JSON. An error of the
// proxy itself is reported by Broken and is never an answer of the API server.
package proxy
