// Command probe is the container the tests run: it shows, over HTTP or on its output, what a
// process sees of its sandbox.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx)
	case len(args) == 2 && args[0] == "exit":
		code, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		os.Exit(code)
	case len(args) == 1 && args[0] == "whoami":
		fmt.Println(whoami())
	case len(args) == 1 && args[0] == "wait":
		<-ctx.Done()
	case len(args) == 1 && args[0] == "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("started")
		select {}
	case len(args) == 1 && args[0] == "parent":
		child := exec.Command("/proc/self/exe", "stubborn")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return err
		}
		<-ctx.Done()
	case len(args) == 2 && args[0] == "cat":
		data, err := os.ReadFile(args[1])
		fmt.Print(string(data))
		return err
	case len(args) == 2 && args[0] == "ls":
		entries, err := os.ReadDir(args[1])
		for _, entry := range entries {
			fmt.Println(entry.Name())
		}
		return err
	case len(args) == 2 && args[0] == "touch":
		return os.WriteFile(args[1], nil, 0o644)
	default:
		return fmt.Errorf("unknown arguments %q", args)
	}
	return nil
}

func whoami() string {
	host, _ := os.Hostname()
	groups, _ := os.Getgroups()
	return fmt.Sprintf("uid=%d gid=%d groups=%v pid=%d host=%s", os.Getuid(), os.Getgid(), groups, os.Getpid(), host)
}

func serve(ctx context.Context) error {
	var sick, unready atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, !sick.Load()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, !unready.Load()) })
	mux.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	mux.HandleFunc("/unready", func(http.ResponseWriter, *http.Request) { unready.Store(true) })
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) { unready.Store(false) })
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, whoami()) })
	mux.HandleFunc(
		"/env", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(os.Environ(), "\n")) },
	)
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(r.URL.Query().Get("path"))
		respond(w, data, err)
	})
	mux.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		data, err := askAPIServer(r.URL.Query().Get("path"))
		respond(w, data, err)
	})
	mux.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		data, err := fetch(r.URL.Query().Get("url"))
		respond(w, data, err)
	})
	server := &http.Server{Addr: net.JoinHostPort(os.Getenv("POD_IP"), "8080"), Handler: mux}
	if address, set := os.LookupEnv("LISTEN"); set {
		server.Addr = address
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func answer(w http.ResponseWriter, well bool) {
	if !well {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func respond(w http.ResponseWriter, data []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(data)
}

// fetch shows what this process reaches. Certificates are not what is asked for.
func fetch(url string) ([]byte, error) {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// askAPIServer does what an in-cluster client does, by hand.
func askAPIServer(path string) ([]byte, error) {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return []byte(response.Status + "\n" + string(data)), err
}
