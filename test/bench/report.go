package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// steps that a host goes through: five services, libvirt and nova.
const steps = 7

// row of the table: a name, and what it says of each size.
type row struct {
	name  string
	value func(i int, r result) string
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func table(results []result) string {
	rows := []row{
		{"Time until every compute is Ready", func(_ int, r result) string { return seconds(r.time) }},
		{"Floor: the same writes by a bare client", func(_ int, r result) string { return seconds(r.floor) }},
		{"**Floor / time** (aim: at least 0.5)", func(_ int, r result) string { return fmt.Sprintf("**%.2f**", r.floor.Seconds()/r.time.Seconds()) }},
		{"**Growth** from the size before (aim: at most 4.4 per fourfold)", func(i int, r result) string {
			if i == 0 {
				return ""
			}
			before := results[i-1]
			return fmt.Sprintf("**%.2f** for %.2g times the nodes", r.time.Seconds()/before.time.Seconds(), float64(r.nodes)/float64(before.nodes))
		}},
		{"API writes of the manager per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.writes)/float64(r.nodes)) }},
		{"of these refused because of a conflict, in all", func(_ int, r result) string { return fmt.Sprint(r.conflicts) }},
		{"Writes of the floor per node", func(_ int, r result) string { return fmt.Sprintf("%.1f", float64(r.floorWrites)/float64(r.nodes)) }},
		{"List calls, in all (aim: none)", func(_ int, r result) string { return lists(r.lists) }},
		{"**Peak memory per node** above the idle manager (aim: under 64 KiB)", func(_ int, r result) string {
			return fmt.Sprintf("**%.0f KiB**", float64(r.peak-r.base)/1024/float64(r.nodes))
		}},
		{"the same, from the peak of the size before", func(i int, r result) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf("%.0f KiB", float64(r.peak-results[i-1].peak)/1024/float64(r.nodes-results[i-1].nodes))
		}},
		{"Idle manager / peak", func(_ int, r result) string { return fmt.Sprintf("%d / %d MiB", r.base>>20, r.peak>>20) }},
		{"Runs (steps × batches of roles)", func(_ int, r result) string { return fmt.Sprint(r.started) }},
		{fmt.Sprintf("Times that a host was in a run, per host and step (%d steps; exactly once: 1)", steps), func(_ int, r result) string {
			return fmt.Sprintf("%.3f", float64(r.targets)/float64(r.nodes*steps))
		}},
		{"Reconciliations per node", func(_ int, r result) string {
			total := 0
			for _, n := range r.reconciles {
				total += n
			}
			return fmt.Sprintf("%.1f", float64(total)/float64(r.nodes))
		}},
		{"One Job, alone, through Kubernetes and KWOK", func(_ int, r result) string { return seconds(r.oneJob) }},
		{fmt.Sprintf("%d Jobs at once, without the manager", manyJobs), func(_ int, r result) string { return seconds(r.manyJobs) }},
		{"Mean time of a Job during the measurement", func(_ int, r result) string { return seconds(r.jobMean) }},
		{"Processor time: manager", func(_ int, r result) string { return seconds(r.cpu["manager"]) }},
		{"Processor time: kube-apiserver and etcd", func(_ int, r result) string { return seconds(r.cpu["kube-apiserver"] + r.cpu["etcd"]) }},
		{"the same, for the floor", func(_ int, r result) string { return seconds(r.floorCPU) }},
		{"Processor time: Job controller, scheduler, KWOK", func(_ int, r result) string {
			return seconds(r.cpu["kube-controller-manager"] + r.cpu["kube-scheduler"] + r.cpu["kwok"])
		}},
		{"**Floor / time in processor time**, of all processes", func(_ int, r result) string {
			all := r.cpu["manager"]
			for _, name := range []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok"} {
				all += r.cpu[name]
			}
			return fmt.Sprintf("**%.2f**", r.floorCPU.Seconds()/all.Seconds())
		}},
	}
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
