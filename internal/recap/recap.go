// Package recap reads what the callback plugin of the execution environment
// writes into the termination message of a runner container.
package recap

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// ErrNone says that the container left no recap: it was killed, or never ran Ansible.
var ErrNone = errors.New("the runner left no recap")

// maxInflated bounds what a compressed recap may become.
const maxInflated = 1 << 20

// document is the message, version 1: hosts in the clear, or z, the hosts
// compressed with zlib and encoded with base64.
type document struct {
	Version int `json:"v"`
	// Steps of the run. Runner images that do not record the end of a play have none.
	Steps  *int32                       `json:"steps"`
	Hosts  map[string][]json.RawMessage `json:"hosts"`
	Zipped string                       `json:"z"`
	Error  string                       `json:"error"`
}

// Recap is the outcome of a run.
type Recap struct {
	// Hosts are the results, sorted by name.
	Hosts []ansibleeev1.HostStatus
	// Error says why no play was run at all.
	Error string
}

// Parse returns the recap in a termination message. It returns ErrNone for an
// empty message, and another error for one that cannot be understood.
func Parse(message string) (Recap, error) {
	if message == "" {
		return Recap{}, ErrNone
	}
	var doc document
	if err := json.Unmarshal([]byte(message), &doc); err != nil {
		return Recap{}, fmt.Errorf("the recap is not JSON: %w", err)
	}
	if doc.Version != 1 {
		return Recap{}, fmt.Errorf("the recap has version %d, and only 1 is supported: use an execution environment that matches this operator", doc.Version)
	}
	if doc.Zipped != "" {
		if err := inflate(doc.Zipped, &doc.Hosts); err != nil {
			return Recap{}, err
		}
	}
	result := Recap{Error: validate.WithoutControls(doc.Error)}
	for name, fields := range doc.Hosts {
		host, err := parseHost(name, fields, doc.Steps)
		if err != nil {
			return Recap{}, err
		}
		result.Hosts = append(result.Hosts, host)
	}
	sort.Slice(result.Hosts, func(i, j int) bool { return result.Hosts[i].Name < result.Hosts[j].Name })
	return result, nil
}

// parseHost reads [ok, changed, failed, unreachable, skipped, message, host key,
// steps done, connected, steps begun, refused, differences, not empty]; those from the message on can be missing. Unless it is
// given, a host without failure has done all steps, and another one none.
func parseHost(name string, fields []json.RawMessage, steps *int32) (ansibleeev1.HostStatus, error) {
	h := ansibleeev1.HostStatus{Name: name}
	if validate.WithoutControls(name) != name {
		return h, fmt.Errorf("the recap has a host %q, which is not a valid name of a host", name)
	}
	counts := []*int32{&h.OK, &h.Changed, &h.Failed, &h.Unreachable, &h.Skipped}
	if len(fields) < len(counts) {
		return h, fmt.Errorf("the recap of host %s has %d fields and needs %d", name, len(fields), len(counts))
	}
	for i, count := range counts {
		if err := json.Unmarshal(fields[i], count); err != nil {
			return h, fmt.Errorf("field %d of the recap of host %s is not a count: %w", i+1, name, err)
		}
	}
	if steps != nil {
		h.StepsDone = ptr.To(*steps)
		if h.Failed > 0 || h.Unreachable > 0 {
			h.StepsDone = ptr.To[int32](0)
		}
	}
	connected, refused, notEmpty := 1, 0, 0
	var differences [][]any
	rest := []struct {
		name string
		to   any
	}{{"message", &h.Message}, {"key", &h.HostKey}, {"number of steps done", &h.StepsDone}, {"connection", &connected}, {"number of steps begun", &h.StepsBegun}, {"refusal", &refused}, {"differences", &differences}, {"need of an empty host", &notEmpty}}
	for i, field := range fields[len(counts):min(len(fields), len(counts)+len(rest))] {
		if err := json.Unmarshal(field, rest[i].to); err != nil {
			return h, fmt.Errorf("the %s of host %s in the recap is not valid: %w", rest[i].name, name, err)
		}
	}
	h.Message, h.HostKey, h.NotConnected = validate.WithoutControls(h.Message), hostKey(h.HostKey), connected == 0
	h.Refused, h.HostNotEmpty = refused == 1 && h.Failed > 0, notEmpty == 1 && h.Failed > 0
	for _, d := range differences[:min(len(differences), maxDifferences)] {
		h.Differences = append(h.Differences, difference(d))
	}
	return h, nil
}

// Bounds of what is kept of a host.
const (
	maxDifferences = 256
	maxNames       = 8
	maxText        = 128
)

// difference reads [step, task, names...] or [step, number of further tasks].
func difference(fields []any) ansibleeev1.StepDifference {
	d := ansibleeev1.StepDifference{Step: 1}
	for i, field := range fields[:min(len(fields), maxNames+2)] {
		number, isNumber := field.(float64)
		text, isText := field.(string)
		text = validate.WithoutControls(strings.ToValidUTF8(text[:min(len(text), maxText)], ""))
		number = min(max(number, 0), math.MaxInt16)
		switch {
		case i == 0 && isNumber:
			d.Step = int32(number)
		case i == 1 && isNumber:
			d.Omitted = int32(number)
		case i == 1:
			d.Task = text
		case i > 1 && isText:
			d.Names = append(d.Names, text)
		}
	}
	return d
}

// hostKey returns the public key of a host, or nothing if it is none: what is
// kept as the key of a host is what the host has to show from then on.
func hostKey(text string) string {
	if _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text)); err != nil || len(rest) > 0 {
		return ""
	}
	return text
}

func inflate(text string, hosts *map[string][]json.RawMessage) error {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("the compressed recap is not base64: %w", err)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("the compressed recap is not zlib: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxInflated))
	if err != nil {
		return fmt.Errorf("inflating the recap: %w", err)
	}
	if err := json.Unmarshal(plain, hosts); err != nil {
		return fmt.Errorf("the inflated recap is not JSON: %w", err)
	}
	return nil
}
