package nova

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/edpm-operators/edpm-operators/internal/podified"
)

//go:embed map-cell.sh
var mapCell []byte

// mapCellFile is where a Job finds mapCell.
const mapCellFile = "map-cell.sh"

// manage returns a command of nova-manage.
func manage(args ...string) []string {
	return append([]string{"nova-manage", "--config-dir", configDir}, args...)
}

// OnlineMigrations brings the data of the database of a cell, and of the API
// database, to the format of their schema. Without an API database it fails.
var OnlineMigrations = manage("db", "online_data_migrations")

// APIDatabaseJob creates or updates the schema of the API database. It has the
// customServiceConfig of the API, which may say how to connect.
func APIDatabaseJob(name, database string, config Config, custom string) (*podified.Job, error) {
	return newJob(name, "update the schema of API database "+database, config, custom, manage("api_db", "sync"))
}

// CellDatabaseJob creates or updates the schema of the database of a cell. It has the
// customServiceConfig of the conductor.
func CellDatabaseJob(name, database string, config Config, custom string) (*podified.Job, error) {
	return newJob(name, "update the schema of database "+database, config, custom, manage("db", "sync", "--local_cell"))
}

// MappingJob makes a cell known to the API, or makes its new message bus or database
// known, and brings the data of both databases to the format of the schema. The
// configuration has those of the cell: a command line would show its passwords.
func MappingJob(name, cell string, config Config) (*podified.Job, error) {
	job, err := newJob(name, "map cell "+cell+" in the API database", config, "",
		[]string{"/bin/bash", configDir + "/" + mapCellFile, cell}, OnlineMigrations)
	if err != nil {
		return nil, err
	}
	job.Config[mapCellFile] = mapCell
	return job, nil
}

// DiscoveryJob maps the hosts of computes to their cells. It runs again for other hosts,
// which are in its configuration for that.
func DiscoveryJob(name string, hosts []string, found time.Time, config Config) (*podified.Job, error) {
	job, err := newJob(name, fmt.Sprintf("map %d hosts to their cells", len(hosts)), config, "", manage("cell_v2", "discover_hosts", "--verbose"))
	if err != nil {
		return nil, err
	}
	job.Config["hosts"] = []byte(found.Format(time.RFC3339Nano) + "\n" + strings.Join(hosts, "\n") + "\n")
	return job, nil
}

func newJob(name, purpose string, config Config, custom string, commands ...[]string) (*podified.Job, error) {
	text, err := config.Service()
	if err != nil {
		return nil, err
	}
	files := podified.Snippets{Custom: custom}.Files("nova", text)
	files["03-job.conf"] = []byte(jobConf)
	return &podified.Job{
		Name: name, Purpose: purpose, Commands: commands, Config: files,
		ConfigDir: configDir, Writable: stateDir, User: user,
	}, nil
}

// jobConf makes a Job fail soon where a service would wait: what it waits for is
// shown when it has failed.
const jobConf = `[database]
max_retries = 2
retry_interval = 2

[api_database]
max_retries = 2
retry_interval = 2
`
