package nova

import (
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// Scripts of Jobs and endpoints, by the names under which they are in the configuration.
//
//go:embed map-cell.sh unmap-cell.sh purge-database.sh serve.sh check-upgrade.py
var scripts embed.FS

const (
	mapCellFile   = "map-cell.sh"
	unmapCellFile = "unmap-cell.sh"
	purgeFile     = "purge-database.sh"
	serveFile     = "serve.sh"
	checkFile     = "check-upgrade.py"
	deployedFile  = "deployed.json"
	reportFile    = "01-nova-report.conf"
	programFile   = "program.ini" // next to the files that all programs read: those end with .conf
)

// manage returns a command of nova-manage.
func manage(args ...string) []string {
	return slices.Concat([]string{"nova-manage"}, configArgs, args)
}

// onlineMigrations brings the data of the database of a cell, and of the API
// database, to the format of their schema. Without an API database it fails.
var onlineMigrations = manage("db", "online_data_migrations")

// APIDatabaseJob creates or updates the schema of the API database. It has the
// customServiceConfig of the API, which may say how to connect.
func APIDatabaseJob(name, database string, config Config, custom podified.Snippets) (*podified.Job, error) {
	return newJob(name, "update the schema of API database "+database, config, custom, manage("api_db", "sync"))
}

// DeployedServices are those that are to run the release that is deployed.
type DeployedServices struct {
	// Conductor is the StatefulSet of the super conductor, whose pods tell which release that is.
	Conductor string `json:"conductor"`
	// Cells are the names of those whose conductors have the same image.
	Cells []string `json:"cells"`
	// Computes are the names that hosts of computes have in nova.
	Computes []string `json:"computes"`
}

// UpgradeCheckJob checks, before anything is changed, whether its image can take over the
// databases of a Nova that runs the image deployed. It has the customServiceConfig of the API.
// What it has found although it succeeds is in Job.Left. Without services it does not look
// whether any is older than what is deployed.
func UpgradeCheckJob(name, deployed string, services *DeployedServices, config Config, custom podified.Snippets) (*podified.Job, error) {
	job, err := checkJob(name, "check whether the databases can be updated", config, custom, nil)
	if err != nil {
		return nil, err
	}
	if services != nil {
		if job.Config[deployedFile], err = json.Marshal(services); err != nil {
			return nil, fmt.Errorf("writing what is deployed: %w", err)
		}
	}
	job.Causes = []podified.Cause{
		{Reason: novav1.ImageTooOldReason, Detailed: true, Text: "Set an image of the release of " + deployed + ", or of a later one"},
		{Reason: novav1.ComputesTooOldReason, Detailed: true, Text: "Set an image of a release between theirs and this one first, or delete their services if they no longer exist"},
		{Reason: novav1.ServicesOlderReason, Detailed: true, Text: "Restart them with the images that are deployed, computes on hosts by kubectl edpm rerun <node>, or stop them and delete their services: openstack compute service delete <id>"},
		{Reason: novav1.UpgradeCheckFailedReason, Detailed: true, Text: "Correct that, or set the images back"},
	}
	return job, nil
}

// OnlineMigrationsJob brings the data of the database of a cell, and of the API database, to
// the format of the schema, once no compute of the cell is older than the image: it would
// write rows in the former format, and nothing would migrate those.
func OnlineMigrationsJob(name, cell string, config Config, custom podified.Snippets) (*podified.Job, error) {
	job, err := checkJob(name, "migrate the data of cell "+cell, config, custom, []string{"computes"}, onlineMigrations)
	if err != nil {
		return nil, err
	}
	job.Causes = []podified.Cause{{Reason: novav1.ComputesOlderReason, Detailed: true, Text: "Update them, or delete their services if they no longer exist"}}
	return job, nil
}

// checkJob runs check-upgrade.py before other commands.
func checkJob(name, purpose string, config Config, custom podified.Snippets, args []string, more ...[]string) (*podified.Job, error) {
	commands := append([][]string{append([]string{"python3", configDir + "/" + checkFile}, args...)}, more...)
	job, err := newJob(name, purpose, config, custom, commands...)
	if err != nil {
		return nil, err
	}
	job.Config[checkFile], err = scripts.ReadFile(checkFile)
	return job, err
}

// CellDatabaseJob creates or updates the schema of the database of a cell. It has the
// customServiceConfig of the conductor.
func CellDatabaseJob(name, database string, config Config, custom podified.Snippets) (*podified.Job, error) {
	return newJob(name, "update the schema of database "+database, config, custom, manage("db", "sync", "--local_cell"))
}

// MappingJob makes a cell known to the API, or makes its new message bus or database
// known. The configuration has those of the cell: a command line would show its passwords.
func MappingJob(name, cell string, config Config) (*podified.Job, error) {
	return scriptJob(name, "map cell "+cell+" in the API database", config, mapCellFile, []string{cell})
}

// UnmappingJob removes a cell from the API database, once it has neither hosts nor
// instances. The configuration has the database of the cell, which may have rows of
// instances that were deleted.
func UnmappingJob(name, cell string, config Config) (*podified.Job, error) {
	job, err := scriptJob(name, "remove cell "+cell+" from the API database", config, unmapCellFile, []string{cell})
	if err != nil {
		return nil, err
	}
	job.Causes = stillUsed
	return job, nil
}

// stillUsed are what nova-manage says of a cell that it does not remove.
var stillUsed = []podified.Cause{
	{Reason: novav1.CellHasHostsReason, Pattern: `There are existing hosts mapped to cell`,
		Text: "hosts are mapped to the cell: delete their compute services (openstack compute service delete)"},
	{Reason: novav1.CellHasInstancesReason, Pattern: `There are existing instances mapped to cell`,
		Text: "the cell has instances: delete them"},
}

// PurgeCronJob archives and purges rows of deleted instances in the database of a cell.
// The API database is in the configuration: it has their mappings.
func PurgeCronJob(name, cell string, purge novav1.NovaCellDBPurge, config Config) (*podified.CronJob, error) {
	days := []string{strconv.Itoa(int(purge.ArchiveAge)), strconv.Itoa(int(purge.PurgeAge))}
	job, err := scriptJob(name, "remove rows of deleted instances from the database of cell "+cell, config, purgeFile, days)
	if err != nil {
		return nil, err
	}
	return &podified.CronJob{Job: *job, Schedule: spread(purge.Schedule, name), Suspend: purge.Suspend}, nil
}

// midnight is the default of dbPurge.schedule.
const midnight = "0 0 * * *"

// spread gives each CronJob another minute of the first hour in place of midnight: not all
// databases are to be written at once. Other schedules are as they were given.
func spread(schedule, name string) string {
	if schedule != midnight {
		return schedule
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return fmt.Sprintf("%d 0 * * *", hash.Sum32()%60)
}

// scriptJob runs a script before other commands.
func scriptJob(name, purpose string, config Config, script string, args []string, more ...[]string) (*podified.Job, error) {
	text, err := scripts.ReadFile(script)
	if err != nil {
		return nil, err
	}
	commands := append([][]string{append([]string{"/bin/bash", configDir + "/" + script}, args...)}, more...)
	job, err := newJob(name, purpose, config, podified.Snippets{}, commands...)
	if err != nil {
		return nil, err
	}
	job.Config[script] = text
	return job, nil
}

// DiscoveryJob maps the hosts of computes to their cells. It runs again for other hosts,
// which are in its configuration for that. By service it finds those too that have no
// compute node yet.
func DiscoveryJob(name string, hosts []string, found time.Time, byService bool, config Config) (*podified.Job, error) {
	command := manage("cell_v2", "discover_hosts", "--verbose")
	if byService {
		command = append(command, "--by-service")
	}
	purpose := fmt.Sprintf("map %d hosts to their cells", len(hosts))
	if len(hosts) == 0 {
		purpose = "map all hosts to their cells"
	}
	job, err := newJob(name, purpose, config, podified.Snippets{}, command)
	if err != nil {
		return nil, err
	}
	job.Config["hosts"] = []byte(found.Format(time.RFC3339Nano) + "\n" + strings.Join(hosts, "\n") + "\n")
	return job, nil
}

// OptionsJob prints the options of an image: see catalogue.Command. It has no configuration.
func OptionsJob(name, image string) *podified.Job {
	return &podified.Job{
		Name: name, Purpose: "read the options of " + image, Image: image, Commands: [][]string{{"/bin/bash", "-c", catalogue.Command}},
		ConfigDir: configDir, Writable: stateDir, User: user,
	}
}

func newJob(name, purpose string, config Config, custom podified.Snippets, commands ...[]string) (*podified.Job, error) {
	files, err := config.files(custom)
	if err != nil {
		return nil, err
	}
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
