package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// steps that a host goes through: five services, the certificate for live migration, libvirt, nova, and
// its peers.
const steps = 9

// row of the table: a name, and what it says of each size.
type row struct {
	name  string
	value func(i int, r result) string
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// tables shows the measurements with many roles, then those with one, and those
// of nodes that were Ready before.
func tables(results []result) string {
	var many, one, later []result
	for _, r := range results {
		switch {
		case r.later:
			later = append(later, r)
		case r.single():
			one = append(one, r)
		default:
			many = append(many, r)
		}
	}
	out := ""
	if len(later) > 0 {
		out += "Nodes that are Ready, annotated with a cell at once:\n\n" + table(later, rowsOfLater) + "\n"
	}
	if len(many) > 0 {
		out += table(many, rowsOfMany(many))
	}
	if len(one) > 0 {
		out += "\nOne role, `maxUnavailable: 10%`, a Topology that each node refers to itself:\n\n" + table(one, rowsOfOne(one))
	}
	return out
}

// perNode is a duration over the nodes.
func perNode(d time.Duration, r result) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)/float64(r.nodes))
}

// allCPU is the CPU time of all processes.
func (r result) allCPU() time.Duration {
	all := time.Duration(0)
	for _, used := range r.cpu {
		all += used
	}
	return all
}

// serverCPU is the CPU time of those that the floor keeps busy too.
func (r result) serverCPU() time.Duration { return r.cpu["kube-apiserver"] + r.cpu["etcd"] }

func (r result) overFloor() string {
	return fmt.Sprintf("%.2f", r.floor.time.Seconds()/r.time.Seconds())
}

func (r result) overNecessary() string {
	return fmt.Sprintf("%.2f", r.necessary.time.Seconds()/r.time.Seconds())
}

var rowsOfLater = []row{
	{"Time until every compute is Ready", func(_ int, r result) string { return seconds(r.time) }},
	{"API writes of the manager per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.writes)/float64(r.nodes)) }},
	{"Runs", func(_ int, r result) string { return fmt.Sprint(r.started) }},
	{"Reconciliations per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", r.reconciledPerNode()) }},
}

// rowsOfAdmission are the times that webhooks add to a write.
func rowsOfAdmission(results []result) []row {
	var rows []row
	for i, a := range results[0].admission {
		rows = append(rows, row{"Webhooks, added to " + a.what + ", p50 / p99 (aim: at most 2 / 10 ms)", func(_ int, r result) string { return r.admission[i].String() }})
	}
	return rows
}

// rowsOfOne are about what grows with the nodes of a role.
func rowsOfOne(results []result) []row {
	growth := func(of func(result) time.Duration) func(int, result) string {
		return func(i int, r result) string {
			if i == 0 {
				return ""
			}
			before := results[i-1]
			return fmt.Sprintf("**%.2f**", of(r).Seconds()/float64(r.nodes)/(of(before).Seconds()/float64(before.nodes)))
		}
	}
	rows := []row{
		{"Time until every compute is Ready", func(_ int, r result) string { return seconds(r.time) }},
		{"Time per node", func(_ int, r result) string { return perNode(r.time, r) }},
		{"**Time per node over that of the size before** (aim: at most 1.3)", growth(func(r result) time.Duration { return r.time })},
		{"Floor per node: the same writes by a bare client", func(_ int, r result) string { return perNode(r.floor.time, r) }},
		{"**the same, over that of the size before**", growth(func(r result) time.Duration { return r.floor.time })},
		{"Floor / time", func(_ int, r result) string { return r.overFloor() }},
		{"Necessary writes only / time", func(_ int, r result) string { return r.overNecessary() }},
		{"CPU time per node: manager", func(_ int, r result) string { return perNode(r.cpu["manager"], r) }},
		{"**the same, over that of the size before**", growth(func(r result) time.Duration { return r.cpu["manager"] })},
		{"CPU time per node: all processes", func(_ int, r result) string { return perNode(r.allCPU(), r) }},
		{"**the same, over that of the size before**", growth(result.allCPU)},
		{"CPU time per node: kube-apiserver and etcd", func(_ int, r result) string { return perNode(r.serverCPU(), r) }},
		{"**the same, over that of the size before**", growth(result.serverCPU)},
		{"the same, for the floor", func(_ int, r result) string { return perNode(r.floor.cpu, r) }},
		{"**the same, over that of the size before**", growth(func(r result) time.Duration { return r.floor.cpu })},
		{"API writes of the manager per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.writes)/float64(r.nodes)) }},
		{"of these refused because of a conflict, in all", func(_ int, r result) string { return fmt.Sprint(r.conflicts) }},
		{"List calls, in all (aim: none)", func(_ int, r result) string { return lists(r.lists) }},
		{"Reconciliations per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", r.reconciledPerNode()) }},
		{"Runs", func(_ int, r result) string { return fmt.Sprint(r.started) }},
		{"Idle manager / peak memory", func(_ int, r result) string { return fmt.Sprintf("%d / %d MiB", r.base>>20, r.peak>>20) }},
		{"Peak memory per node above the idle manager", func(_ int, r result) string {
			return fmt.Sprintf("%.0f KiB", float64(r.peak-r.base)/1024/float64(r.nodes))
		}},
	}
	rows = append(rows, rowsOfAdmission(results)...)
	for i, of := range results[0].largest {
		rows = append(rows, row{fmt.Sprintf("Largest of %s, bytes (aim: at most 524288)", of.resource), func(_ int, r result) string {
			return fmt.Sprint(r.largest[i].bytes)
		}})
	}
	return rows
}

// reconciledPerNode counts the reconciliations of all controllers.
func (r result) reconciledPerNode() float64 {
	total := 0
	for _, n := range r.reconciles {
		total += n
	}
	return float64(total) / float64(r.nodes)
}

func rowsOfMany(results []result) []row {
	return append([]row{
		{"Time until every compute is Ready", func(_ int, r result) string { return seconds(r.time) }},
		{"Floor: the same writes by a bare client", func(_ int, r result) string { return seconds(r.floor.time) }},
		{"**Floor / time** (aim: at least 0.5)", func(_ int, r result) string { return fmt.Sprintf("**%s**", r.overFloor()) }},
		{"**Growth** from the size before (aim: at most 4.2 per fourfold)", func(i int, r result) string {
			if i == 0 {
				return ""
			}
			before := results[i-1]
			return fmt.Sprintf("**%.2f** for %.2g times the nodes", r.time.Seconds()/before.time.Seconds(), float64(r.nodes)/float64(before.nodes))
		}},
		{"API writes of the manager per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.writes)/float64(r.nodes)) }},
		{"of these refused because of a conflict, in all", func(_ int, r result) string { return fmt.Sprint(r.conflicts) }},
		{"Necessary writes only: each object created, two writes of the status of each node and compute", func(_ int, r result) string { return seconds(r.necessary.time) }},
		{"the same / time", func(_ int, r result) string { return r.overNecessary() }},
		{"Necessary writes per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.necessary.writes)/float64(r.nodes)) }},
		{"Writes of the floor per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.floor.writes)/float64(r.nodes)) }},
		{"List calls, in all (aim: none)", func(_ int, r result) string { return lists(r.lists) }},
		{"**Peak memory per node** above the idle manager (aim: at most 36 KiB)", func(_ int, r result) string {
			return fmt.Sprintf("**%.0f KiB**", float64(r.peak-r.base)/1024/float64(r.nodes))
		}},
		{"the same, from the peak of the size before", func(i int, r result) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf("%.0f KiB", float64(r.peak-results[i-1].peak)/1024/float64(r.nodes-results[i-1].nodes))
		}},
		{"Idle manager / peak", func(_ int, r result) string { return fmt.Sprintf("%d / %d MiB", r.base>>20, r.peak>>20) }},
		{"Runs", func(_ int, r result) string { return fmt.Sprint(r.started) }},
		{fmt.Sprintf("Times that a host was in a run, per host and step (%d steps; exactly once: 1)", steps), func(_ int, r result) string {
			return fmt.Sprintf("%.3f", float64(r.targets)/float64(r.nodes*steps))
		}},
		{"Reconciliations per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", r.reconciledPerNode()) }},
		{"One Job, alone, through Kubernetes and KWOK", func(_ int, r result) string { return seconds(r.oneJob) }},
		{fmt.Sprintf("%d Jobs at once, without the manager", manyJobs), func(_ int, r result) string { return seconds(r.manyJobs) }},
		{"Mean time of a Job during the measurement", func(_ int, r result) string { return seconds(r.jobMean) }},
		{"CPU time: manager", func(_ int, r result) string { return seconds(r.cpu["manager"]) }},
		{"CPU time: kube-apiserver and etcd", func(_ int, r result) string { return seconds(r.serverCPU()) }},
		{"the same, for the floor", func(_ int, r result) string { return seconds(r.floor.cpu) }},
		{"CPU time: Job controller, scheduler, KWOK", func(_ int, r result) string {
			return seconds(r.cpu["kube-controller-manager"] + r.cpu["kube-scheduler"] + r.cpu["kwok"])
		}},
		{"**Floor / time in CPU time**, of all processes", func(_ int, r result) string {
			return fmt.Sprintf("**%.2f**", r.floor.cpu.Seconds()/r.allCPU().Seconds())
		}},
	}, rowsOfAdmission(results)...)
}

func table(results []result, rows []row) string {
	var out strings.Builder
	out.WriteString("| |")
	for _, r := range results {
		fmt.Fprintf(&out, " %d nodes |", r.nodes)
	}
	out.WriteString("\n|---|" + strings.Repeat("---:|", len(results)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s |", row.name)
		for i, r := range results {
			fmt.Fprintf(&out, " %s |", row.value(i, r))
		}
		out.WriteString("\n")
	}
	for _, e := range results[len(results)-1].edits {
		fmt.Fprintf(&out, "| %s |%s %s to quiet, %d writes, %d new runs, %d reconciliations |\n",
			e.what, strings.Repeat(" |", len(results)-1), seconds(e.quiet), e.writes, e.runs, e.reconcile)
	}
	return out.String()
}

func lists(counts map[string]int) string {
	if len(counts) == 0 {
		return "0"
	}
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[resource], resource))
	}
	return strings.Join(parts, ", ")
}
