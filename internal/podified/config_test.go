package podified

import (
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

func TestTheAddressOfADatabase(t *testing.T) {
	for name, c := range map[string]struct{ host, password, want string }{
		"a name":                              {"db.example", "p", "mysql+pymysql://nova:p@db.example/nova_api?charset=utf8"},
		"IPv6":                                {"fd00::1", "p", "mysql+pymysql://nova:p@[fd00::1]/nova_api?charset=utf8"},
		"a password of signs and line breaks": {"db.example", "p@/:\r\n", "mysql+pymysql://nova:p%40%2F%3A@db.example/nova_api?charset=utf8"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MySQL(c.host, "nova", c.password, "nova_api"); got != c.want {
				t.Errorf("it is %s; want %s", got, c.want)
			}
		})
	}
}

func TestTextsThatWouldMakeAnotherServiceAreRefusedWithoutAWordOfASecret(t *testing.T) {
	const text = "[database]\nconnection = mysql+pymysql://u:hunter2@h/d\n"
	for name, parse := range map[string]func(string) (*oslo.Config, error){"customServiceConfig": oslo.Parse, "one of a Secret": oslo.ParseSecret} {
		t.Run(name, func(t *testing.T) {
			err := check(identity.PodNova, parse, text)
			if err == nil || !strings.Contains(err.Error(), "line 2: [database] connection ") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("want line 2 refused without its value, got %v", err)
			}
			if err := check(identity.Image, parse, text); err != nil {
				t.Errorf("glance may have its database there, got %v", err)
			}
		})
	}
}
