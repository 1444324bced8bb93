package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// verdict is the result of one kind of probe so far.
type verdict int

const (
	undecided verdict = iota
	passing
	failing
)

// streak counts equal results in a row. The zero value has seen nothing.
type streak struct {
	verdict verdict
	last    bool
	run     int32
}

// count returns the streak after one more result. The verdict changes only after as many equal
// results in a row as the threshold says.
func (s streak) count(success bool, probe *corev1.Probe) streak {
	if s.run == 0 || s.last != success {
		s.last, s.run = success, 0
	}
	s.run++
	switch {
	case success && s.run >= max(probe.SuccessThreshold, 1):
		s.verdict = passing
	case !success && s.run >= max(probe.FailureThreshold, 1):
		s.verdict = failing
	}
	return s
}

// dial connects to an address from a container's network.
type dial func(ctx context.Context, protocol, address string) (net.Conn, error)

// execute runs one command in a container, for exec probes.
type execute func(ctx context.Context, argv []string) (int32, error)

// attempt runs a probe once and returns nil when it succeeded.
func attempt(
	ctx context.Context, probe *corev1.Probe, podIP string, ports []corev1.ContainerPort, from dial, run execute,
) error {
	ctx, cancel := context.WithTimeout(ctx, max(time.Duration(probe.TimeoutSeconds)*time.Second, time.Second))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return attemptHTTP(ctx, probe.HTTPGet, podIP, ports, from)
	case probe.TCPSocket != nil:
		return attemptTCP(ctx, probe.TCPSocket, podIP, ports, from)
	case probe.Exec != nil:
		code, err := run(ctx, probe.Exec.Command)
		if err == nil && code != 0 {
			err = fmt.Errorf("command exited with code %d", code)
		}
		return err
	default:
		return errors.New("the probe has no handler the process node knows")
	}
}

func attemptHTTP(
	ctx context.Context, action *corev1.HTTPGetAction, podIP string, ports []corev1.ContainerPort, from dial,
) error {
	target, err := probeURL(action, podIP, ports)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/process-node")
	for _, header := range action.HTTPHeaders {
		if strings.EqualFold(header.Name, "Host") {
			request.Host = header.Value
		}
		request.Header.Add(header.Name, header.Value)
	}
	response, err := probeClient(from).Do(request)
	if err != nil {
		return err
	}
	defer closeQuietly(response.Body)
	const shown = 256
	body, err := io.ReadAll(io.LimitReader(response.Body, shown))
	if err != nil {
		return err
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d: %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	return nil
}

// probeClient does not verify certificates, as a kubelet, and does not follow redirects, which a
// kubelet counts as success.
func probeClient(from dial) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:       from,
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet probes
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func attemptTCP(
	ctx context.Context, action *corev1.TCPSocketAction, podIP string, ports []corev1.ContainerPort, from dial,
) error {
	port, err := portNumber(action.Port, ports)
	if err != nil {
		return err
	}
	connection, err := from(ctx, "tcp", net.JoinHostPort(or(action.Host, podIP), strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return connection.Close()
}

func probeURL(action *corev1.HTTPGetAction, podIP string, ports []corev1.ContainerPort) (string, error) {
	port, err := portNumber(action.Port, ports)
	if err != nil {
		return "", err
	}
	path, err := url.Parse(action.Path)
	if err != nil {
		return "", err
	}
	target := url.URL{
		Scheme:   strings.ToLower(or(string(action.Scheme), string(corev1.URISchemeHTTP))),
		Host:     net.JoinHostPort(or(action.Host, podIP), strconv.Itoa(port)),
		Path:     "/" + strings.TrimPrefix(path.Path, "/"),
		RawQuery: path.RawQuery,
	}
	return target.String(), nil
}

func portNumber(port intstr.IntOrString, ports []corev1.ContainerPort) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("the container has no port named %s", port.StrVal)
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
