package nodesets

import (
	"errors"
	"strings"
)

// conversions write values as the roles here take them. The errors say what a value is not.
var conversions = map[string]func(any) (any, error){
	"hostnames": hostnames,
	"pairs":     pairs,
	"sysctl":    sysctl,
	"boolean":   boolean,
	"ksm":       choice("enabled", "disabled"),
	"gateway":   choice("enable-chassis-as-gw", ""),
}

// hostnames are those of a list of time servers.
func hostnames(value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("it is not a list of mappings with hostname: write edpm_ntp_servers, a list of names")
	}
	names := []any{}
	for _, item := range list {
		server, ok := item.(map[string]any)
		name, isText := server["hostname"].(string)
		if !ok || !isText {
			return nil, errors.New("it is not a list of mappings with hostname: write edpm_ntp_servers, a list of names")
		}
		if pool, _ := server["pool"].(bool); pool {
			return nil, errors.New("it has a pool: write lines of chrony.conf in edpm_chrony_extra, and servers in edpm_ntp_servers")
		}
		names = append(names, name)
	}
	return names, nil
}

// pairs makes a mapping of a list of NAME:VALUE.
func pairs(value any) (any, error) {
	wrong := errors.New("it is not a list of NETWORK:BRIDGE: write a mapping of networks to bridges")
	list, ok := value.([]any)
	if !ok {
		return nil, wrong
	}
	mapping := map[string]any{}
	for _, item := range list {
		text, _ := item.(string)
		name, to, found := strings.Cut(text, ":")
		if !found || strings.Contains(text, "{{") {
			return nil, wrong
		}
		mapping[name] = to
	}
	return mapping, nil
}

// sysctl makes names and values of names and mappings with value.
func sysctl(value any) (any, error) {
	settings, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a mapping: write a mapping of names to values")
	}
	plain := map[string]any{}
	for name, setting := range settings {
		inner, ok := setting.(map[string]any)
		if _, has := inner["value"]; !ok || !has {
			return nil, errors.New("an entry is not a mapping with value: write a mapping of names to values")
		}
		plain[name] = inner["value"]
	}
	return plain, nil
}

// boolean keeps what Ansible takes for true or false.
func boolean(value any) (any, error) {
	if _, err := isTrue(value); err != nil {
		return nil, err
	}
	return value, nil
}

// choice makes one of two values of true and false.
func choice(yes, no string) func(any) (any, error) {
	return func(value any) (any, error) {
		switch is, err := isTrue(value); {
		case err != nil:
			return nil, err
		case is:
			return yes, nil
		}
		return no, nil
	}
}

func isTrue(value any) (bool, error) {
	switch value := value.(type) {
	case bool:
		return value, nil
	case string:
		switch strings.ToLower(value) {
		case "true", "yes", "on":
			return true, nil
		case "false", "no", "off":
			return false, nil
		}
	}
	return false, errors.New("it is neither true nor false: write the value itself, not a template")
}
