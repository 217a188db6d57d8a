package edpm

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

// What a user of a namespace may try, see docs/security.md.

// hostile are values that would mean something if they were written into an
// inventory as they are.
var hostile = map[string]any{
	"newline":   "a\n    evil:\n      ansible_connection: local",
	"python":    "!!python/object/apply:os.system [id]",
	"vault":     "!vault |\n  $ANSIBLE_VAULT;1.1;AES256",
	"unsafe":    "!unsafe '{{ x }}'",
	"anchor":    "&a *a",
	"document":  "a\n---\nall: {hosts: {evil: {}}}\n...",
	"quotes":    `a" 'b' \ # c`,
	"key: evil": "a",
	"\n  evil":  "b",
	"control":   "\x00\x07\x1b[31m\u2028",
	"nested":    map[string]any{"- evil: {": []any{"}", "? ", "%TAG ! x"}},
}

func hostileBatch() []*pendingTarget {
	override := []byte("[DEFAULT]\npassword = {{ lookup('pipe', 'id') }}\n{% raw %}\r\n\x00!unsafe\n")
	return []*pendingTarget{
		{Target: target(func(t *Target) {
			t.Host, t.Vars = "n1", maps.Clone(hostile)
			t.Vars["edpm_hash"], t.Vars["edpm_run"], t.Vars["edpm_config_files"] = "forged", "forged", map[string]any{"a": "/etc/shadow"}
			t.Files = map[string][]byte{"../../etc/passwd": override}
		}), hash: "h1"},
		{Target: target(func(t *Target) { t.Host, t.Vars = "n2", map[string]any{"own": "n2"} }), hash: "h2"},
	}
}

func TestNoVariableSpeaksOfAnotherHostOrForTheEngine(t *testing.T) {
	data, err := runInputs("run", hostileBatch())
	if err != nil {
		t.Fatal(err)
	}
	var got Inventory
	if err := yaml.UnmarshalStrict(data[InventoryKey], &got); err != nil {
		t.Fatal(err)
	}
	if hosts := slices.Sorted(maps.Keys(got.All.Hosts)); !slices.Equal(hosts, []string{"n1", "n2"}) || len(got.All.Children) > 0 {
		t.Errorf("the inventory has hosts %q and groups %v; want n1 and n2", hosts, got.All.Children)
	}
	vars := got.All.Hosts["n1"]
	for name, want := range hostile {
		if diff := cmp.Diff(want, vars[name]); diff != "" {
			t.Errorf("variable %q (-want +got):\n%s", name, diff)
		}
	}
	if vars["edpm_hash"] != "h1" || got.All.Vars["edpm_run"] != "run" || vars["edpm_run"] != nil {
		t.Errorf("variables of the engine were forged: %v, %v", vars["edpm_hash"], vars["edpm_run"])
	}
	if _, leaked := got.All.Hosts["n2"]["newline"]; leaked {
		t.Error("n2 has a variable of n1")
	}
}

func TestFilesKeepTheirContentAndLandWhereTheEngineSays(t *testing.T) {
	batch := hostileBatch()
	data, err := runInputs("run", batch)
	if err != nil {
		t.Fatal(err)
	}
	want := batch[0].Files["../../etc/passwd"]
	key := contentKey(want)
	if diff := cmp.Diff(string(want), string(data[key])); diff != "" {
		t.Errorf("the file changed on its way (-want +got):\n%s", diff)
	}
	var got Inventory
	if err := yaml.UnmarshalStrict(data[InventoryKey], &got); err != nil {
		t.Fatal(err)
	}
	files, _ := got.All.Hosts["n1"]["edpm_config_files"].(map[string]any)
	if files["../../etc/passwd"] != configDir+"/"+key {
		t.Errorf("the runner is to read %v; want %s", files, configDir+"/"+key)
	}
	for name := range data {
		if strings.ContainsAny(name, "/") || name == ".." {
			t.Errorf("the Secret has the key %q, which would leave its directory", name)
		}
	}
}

// TestAnsibleReadsWhatWasMeant asks Ansible itself how it reads an inventory.
func TestAnsibleReadsWhatWasMeant(t *testing.T) {
	needs.Ansible(t, "ansible-inventory")
	data, err := runInputs("run", hostileBatch())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(file, data[InventoryKey], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ansible-inventory", "-i", file, "--list")
	cmd.Env = append(os.Environ(), "ANSIBLE_INVENTORY_UNPARSED_FAILED=true", "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ansible-inventory: %v", err)
	}
	var got struct {
		Meta struct {
			HostVars map[string]map[string]any `json:"hostvars"`
		} `json:"_meta"`
		All struct{ Children []string } `json:"all"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if hosts := slices.Sorted(maps.Keys(got.Meta.HostVars)); !slices.Equal(hosts, []string{"n1", "n2"}) || !slices.Equal(got.All.Children, []string{"ungrouped"}) {
		t.Errorf("Ansible sees the hosts %q and the groups %q", hosts, got.All.Children)
	}
	for name, want := range hostile {
		if diff := cmp.Diff(want, got.Meta.HostVars["n1"][name]); diff != "" {
			t.Errorf("variable %q as Ansible reads it (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsTooLargeIsNamedAndNotOffered(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		change func(*Target)
		want   string
	}{
		"files": {func(t *Target) {
			t.Files = map[string][]byte{"01-nova.conf": []byte("a"), "02-nova-override.conf": []byte(large)}
		}, "the largest is file 02-nova-override.conf with 1048576: shorten it"},
		"variables": {func(t *Target) { t.Vars = map[string]any{"a": large} }, "the largest is the variables (ansibleVars)"},
		"env":       {func(t *Target) { t.Env = []corev1.EnvVar{{Name: "A", Value: large}} }, "the largest is env"},
		"a play":    {func(t *Target) { t.Step.PlaybookContents = large }, "the largest is the playbook"},
		"mounts": {func(t *Target) {
			t.ExtraMounts = []ansibleeev1.ExtraMount{{ExtraVolType: large}}
		}, "the largest is extraMounts"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			state := y.converge(&common.Ledger{}, wantedOf("a", tt.change))
			if state.Phase != TooLarge || !strings.Contains(state.Describe(), tt.want) || len(state.Describe()) > 400 {
				t.Errorf("state %s: %.500s; want one that says %q", state.Phase, state.Describe(), tt.want)
			}
			y.plan(group1)
			if runs := y.runs(); len(runs) > 0 {
				t.Errorf("there are runs: %v", runs)
			}
		})
	}
	y := newYard(t)
	fits := wantedOf("a", func(t *Target) { t.Files = map[string][]byte{"a": []byte(large[:maxTargetInputs-4<<10])} })
	if state := y.converge(&common.Ledger{}, fits); state.Phase != Pending {
		t.Fatalf("what just fits is %s: %s", state.Phase, state.Describe())
	}
	y.plan(group1)
	secrets := &corev1.SecretList{}
	if err := y.api.List(ctx, secrets); err != nil || len(secrets.Items) != 1 || size(secrets.Items[0].Data) > corev1.MaxSecretSize {
		t.Errorf("want one Secret that the API server takes, got %d (%v)", len(secrets.Items), err)
	}
}

func TestALongRerunTokenStaysShortInARun(t *testing.T) {
	y := newYard(t)
	token := strings.Repeat("x", 200<<10)
	y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { t.Rerun = token }))
	y.plan(group1)
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := y.api.List(ctx, list); err != nil || len(list.Items) != 1 {
		t.Fatalf("want one run, got %d (%v)", len(list.Items), err)
	}
	if got := list.Items[0].Spec.Targets[0].Rerun; got == "" || len(got) > maxToken {
		t.Errorf("the token in the run has %d characters", len(got))
	}
	if ShortToken("a") != "a" || ShortToken(token) == ShortToken(token+"y") {
		t.Error("a short token should stay, and different ones differ")
	}
}

func TestARunThatTheAPIServerRefusesIsToldOfAndLeavesNoSecretBehind(t *testing.T) {
	y := newYard(t)
	resource := schema.GroupResource{Resource: "openstackansibleees"}
	y.createRun = func(func() error) error {
		return apierrors.NewForbidden(resource, "x", apierrors.NewBadRequest("spec.env[0].value: too long"))
	}
	ledger, wanted := &common.Ledger{}, wantedOf("a", nil)
	y.converge(ledger, wanted)
	y.clock.SetTime(y.clock.Now().Add(y.Debounce))
	if _, err := y.reconcile(ctx, group1); err == nil {
		t.Fatal("planning should fail, so that it is tried again")
	}
	select {
	case <-y.owners.wakeups[kind]:
	default:
		t.Error("the owner does not learn of it")
	}
	state := y.converge(ledger, wanted)
	if state.Phase != RolloutHeld || !strings.Contains(state.Message, "rejects its run") || !strings.Contains(state.Message, "spec.env[0].value: too long") {
		t.Errorf("state %s: %s; want to hear what the API server says", state.Phase, state.Message)
	}
	if _, err := y.reconcile(ctx, group1); err == nil {
		t.Fatal("the second try should fail too")
	}
	select {
	case <-y.owners.wakeups[kind]:
		t.Error("the owner gets the same message twice")
	default:
	}
	secrets := &corev1.SecretList{}
	if err := y.api.List(ctx, secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("inputs of a run that there is not are left: %d (%v)", len(secrets.Items), err)
	}
	y.createRun = nil
	y.plan(group1)
	if state := y.converge(ledger, wanted); state.Phase != Running {
		t.Errorf("state %s: %s; want Running once the API server takes it", state.Phase, state.Message)
	}
}

func TestInputsThatSomebodyElsePutThereAreNotUsed(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.clock.SetTime(y.clock.Now().Add(y.Debounce))
	for _, grp := range y.planner.groups {
		batch := slices.Collect(maps.Values(grp.pending))
		planted := newInputs(runName(batch), batch[0], map[string][]byte{InventoryKey: []byte("all: {hosts: {evil: }}")})
		if err := y.api.Create(ctx, planted); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := y.reconcile(ctx, group1); err == nil {
		t.Error("the first try should remove the Secret and be repeated")
	}
	y.plan(group1)
	for name := range y.runs() {
		secret := &corev1.Secret{}
		if err := y.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, secret); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(secret.Data[InventoryKey]), "evil") {
			t.Error("the run uses inputs that another user put there")
		}
	}
	if len(y.runs()) != 1 {
		t.Errorf("want one run, got %v", y.runs())
	}
}

// inTheWay plans a run whose name an object has that is not ours, expects that the
// owner reports the message and that the object stays, and that the run is started
// once it is gone. The object is made of the name of the run.
func inTheWay(t *testing.T, theirs func(name string) client.Object, message string) {
	t.Helper()
	y, ledger, wanted := newYard(t), &common.Ledger{}, wantedOf("a", nil)
	y.converge(ledger, wanted)
	y.clock.SetTime(y.clock.Now().Add(y.Debounce))
	var obj client.Object
	for _, grp := range y.planner.groups {
		obj = theirs(runName(slices.Collect(maps.Values(grp.pending))))
	}
	if err := y.api.Create(ctx, obj); err != nil {
		t.Fatal(err)
	}
	version := obj.GetResourceVersion()
	if _, err := y.reconcile(ctx, group1); !apply.IsConflict(err) {
		t.Errorf("the error is %v; want a *ConflictError", err)
	}
	if state := y.converge(ledger, wanted); state.Phase != RolloutHeld || !strings.Contains(state.Message, message) {
		t.Errorf("state %s: %s; want RolloutHeld: %s", state.Phase, state.Message, message)
	}
	if err := y.api.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil || obj.GetResourceVersion() != version {
		t.Errorf("the object of another user is changed or gone: %v", err)
	}
	if err := y.api.Delete(ctx, obj); err != nil {
		t.Fatal(err)
	}
	y.plan(group1)
	if state := y.converge(ledger, wanted); state.Phase != Running {
		t.Errorf("state %s: %s; want Running once the name is free", state.Phase, state.Message)
	}
}

func TestASecretOfTheNameOfTheInputsIsLeftAlone(t *testing.T) {
	inTheWay(t, func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"theirs": []byte("x")}}
	}, "exists already and was not created for the inputs of a run: delete it if nothing needs it")
}

func TestARunOfSomebodyElseIsLeftAlone(t *testing.T) {
	inTheWay(t, func(name string) client.Object {
		return &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}, "exists already and was not created for step")
}

// FuzzParseInventory looks for inventories that crash the manager, and for errors
// that quote them.
func FuzzParseInventory(f *testing.F) {
	for _, seed := range []string{"all: {hosts: {n: {a: 1}}}", "all:\n  children: {g: {hosts: {n: }}}", "a: &a {children: {b: *a}}", "all: [", "n", "", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vars, err := ParseInventory([]byte(text), "n")
		again, err2 := ParseInventory([]byte(text), "n")
		if diff := cmp.Diff(vars, again); diff != "" || (err == nil) != (err2 == nil) {
			t.Errorf("reading it again gives something else: %s", diff)
		}
		if _, err := (Inventory{All: InventoryGroup{Hosts: map[string]map[string]any{"n": vars}}}).Render(); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
