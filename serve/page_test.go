package serve

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/oracle"
)

// Tools that are typed into the chat page are sent as they were typed: integers above 2^53
// too, which a browser would round.
func TestPageSendsToolsAsTyped(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		oracle.Missing(t, "node")
	}
	script, err := os.ReadFile(filepath.Join("page", "chat.js"))
	if err != nil {
		t.Fatal(err)
	}
	// A page of which only the values of its fields exist.
	const page = `
const fields = { temperature: { value: "0" }, most: { value: "5" }, system: { value: "" }, tools: { value: process.argv[1] }, choice: { value: "auto" }, key: { value: "" } };
const nothing = { addEventListener() {}, append() {}, focus() {}, value: "" };
globalThis.document = { getElementById: (id) => fields[id] ?? nothing, createElement: () => ({ ...nothing }), documentElement: { scrollHeight: 0 } };
globalThis.scrollTo = () => {};
globalThis.fetch = async () => { throw new Error("offline"); };
`
	for _, typed := range []string{
		`[{"type":"function","function":{"name":"f","parameters":{"properties":{"id":{"type":"integer","maximum":9007199254740993,"const":-18446744073709551617}}}}}]`,
		`[{"type":"function","function":{"name":"f","parameters":{"properties":{"x":{"minimum":1.00000000000000000001,"multipleOf":1e400}}}}}]`,
		" [ {\"type\": \"function\",\n\"function\": {\"name\": \"f\", \"description\": \"}\\\" 12345678901234567890\"}} ]\n",
	} {
		out, err := exec.Command(node, "-e", page+string(script)+`
messages = [{ role: "user", content: "hi" }];
process.stdout.write(request());`, typed).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), `,"tools":`+typed+"}") || !strings.Contains(string(out), `"content":"hi"`) {
			t.Errorf("%s: %v %s", typed, err, out)
		}
	}
}
