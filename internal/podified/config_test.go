package podified

import "testing"

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
