package oslo

import (
	"reflect"
	"testing"
)

func TestOwnedWarnsOfWhatTheDeploymentSets(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Warning
	}{
		{"the message bus", "[DEFAULT]\ntransport_url = x\n", []Warning{{Section: "DEFAULT", Key: "transport_url", Line: 2}}},
		{"the notification bus", "[oslo_messaging_notifications]\ntransport_url = x\n", []Warning{{Section: "oslo_messaging_notifications", Key: "transport_url", Line: 2}}},
		{"the cell database", "[database]\nconnection = x\n", []Warning{{Section: "database", Key: "connection", Line: 2}}},
		{"its replica", "[database]\nslave_connection = x\n", []Warning{{Section: "database", Key: "slave_connection", Line: 2}}},
		{"the API database", "[api_database]\nconnection = x\n", []Warning{{Section: "api_database", Key: "connection", Line: 2}}},
		{"a section in other case", "[DataBase]\nconnection = x\n", []Warning{{Section: "DataBase", Key: "connection", Line: 2}}},
		{"a deprecated name", "[DEFAULT]\nsql_connection = x\n", []Warning{{Section: "DEFAULT", Key: "sql_connection", Line: 2}}},
		{"a deprecated section", "[sql]\nconnection = x\n", []Warning{{Section: "sql", Key: "connection", Line: 2}}},
		{"a password", "[placement]\npassword = x\n", []Warning{{Section: "placement", Key: "password", Line: 2}}},
		{"a longer password key", "[oslo_messaging_rabbit]\nrabbit_password = x\n", []Warning{{Section: "oslo_messaging_rabbit", Key: "rabbit_password", Line: 2}}},
		{"the metadata secret", "[neutron]\nmetadata_proxy_shared_secret = x\n", []Warning{{Section: "neutron", Key: "metadata_proxy_shared_secret", Line: 2}}},
		{"every assignment, at its own line", "[a]\npassword = x\n  y\n[b]\n[a]\npassword = z\n", []Warning{{Section: "a", Key: "password", Line: 2}, {Section: "a", Key: "password", Line: 6}}},
		{"not a key in other case, which oslo.config ignores", "[a]\nPASSWORD = x\n", nil},
		{"not a connection elsewhere", "[cache]\nconnection = x\n", nil},
		{"not a value that says password", "[a]\nauth_type = password\n", nil},
		{"not a key with more behind it", "[a]\npassword_file = x\n", nil},
		{"not what is commented out", "[DEFAULT]\n# transport_url = x\n", nil},
		{"not what is swallowed by a continuation", "[a]\nk = v\n  password = x\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Owned(mustParse(t, test.text)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("Owned(%q) = %+v, want %+v", test.text, got, test.want)
			}
		})
	}
}

func TestWarningsNameTheLineAndNoValue(t *testing.T) {
	const want = "line 2: [placement] password is set by the operator and this value overrides it; remove the line unless this is intended"
	if got := Owned(mustParse(t, "[placement]\npassword = hunter2\n"))[0].String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWarningsOfMergedFilesNameTheFile(t *testing.T) {
	cfg := mustParse(t, "[a]\npassword = x\n")
	got := Owned(Merge(cfg, cfg))
	want := []Warning{{Section: "a", Key: "password", Line: 2}, {Section: "a", Key: "password", File: 1, Line: 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
