package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/file"
)

// expirySoon is how long before its end a certificate is warned of.
const expirySoon = 14 * 24 * time.Hour

type checkFlags struct {
	output string
	strict bool
}

func checkCmd() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Say what is wrong with the Gateway API objects of a directory",
		Long: `Read the Gateway API objects of a directory as serve would, say everything that is wrong
with them, where, and what to do about it, and what became of each object. No socket is
opened, so that Programmed is only told where it can't become true.

The exit code is 1 when there is an error, and 0 when there is none; with --strict
warnings count as errors.`,
		Example: `  headgate check config/samples
  headgate check -o json /etc/headgate | jq '.problems[] | select(.severity == "error")'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.OutOrStdout(), args[0], time.Now(), &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	fs.BoolVar(&f.strict, "strict", false, "let warnings count as errors")
	return cmd
}

// check returns errProblems when it has printed an error.
func check(w io.Writer, dir string, now time.Time, f *checkFlags) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output %q: use text or json", f.output)
	}
	opts, err := compileOptions([]string{"0.0.0.0"})
	if err != nil {
		return err
	}
	src, err := file.Open(dir, file.Options{Compile: opts})
	if err != nil {
		return err
	}
	in, problems := src.Input()
	_, report := compile.Compile(in)
	problems = append(problems, report.Problems...)
	problems = append(problems, expiries(report.Certificates, now)...)
	for i := range problems {
		src.Locate(&problems[i])
	}
	compile.SortProblems(problems)
	errs, warnings := 0, 0
	for _, p := range problems {
		if p.Severity == compile.Error {
			errs++
		} else {
			warnings++
		}
	}
	if f.output == "json" {
		err = checkJSON(w, problems, report)
	} else {
		err = checkText(w, problems, report, fmt.Sprintf("%s, %s", plural(errs, "error"), plural(warnings, "warning")))
	}
	if err == nil && (errs > 0 || f.strict && warnings > 0) {
		err = errProblems
	}
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// expiries warns of certificates that are at their end.
func expiries(certs []compile.Certificate, now time.Time) []compile.Problem {
	var out []compile.Problem
	seen := make(map[string]bool)
	for _, c := range certs {
		left := c.NotAfter.Sub(now)
		if left > expirySoon || seen[c.Secret] {
			continue
		}
		seen[c.Secret] = true
		namespace, name, _ := strings.Cut(c.Secret, "/")
		verb := "expires"
		if left < 0 {
			verb = "expired"
		}
		out = append(out, compile.Problem{
			Severity: compile.Warning, Kind: "Secret", Namespace: namespace, Name: name, Reason: "Expiry",
			Message: fmt.Sprintf("the certificate %s on %s; renew it", verb, c.NotAfter.UTC().Format(time.DateTime)),
		})
	}
	return out
}

func checkText(w io.Writer, problems []compile.Problem, r *compile.Report, counts string) error {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	if len(problems) > 0 {
		b.WriteByte('\n')
	}
	for _, x := range r.Classes {
		fmt.Fprintf(&b, "GatewayClass %s: %s\n", x.Name, states(x.Status.Conditions))
	}
	for _, x := range r.Gateways {
		fmt.Fprintf(&b, "Gateway %s: %s\n", x.NamespacedName, states(x.Status.Conditions))
		for _, l := range x.Status.Listeners {
			fmt.Fprintf(&b, "  listener %s: %s, %s\n", l.Name, states(l.Conditions), plural(int(l.AttachedRoutes), "route"))
		}
	}
	for _, x := range r.Routes {
		fmt.Fprintf(&b, "%s %s:", x.Kind, x.NamespacedName)
		for i, p := range x.Parents {
			if len(x.Parents) > 1 {
				fmt.Fprintf(&b, "\n  parent %d, Gateway %s:", i, parentName(p.ParentRef))
			}
			fmt.Fprintf(&b, " %s", states(p.Conditions))
		}
		b.WriteByte('\n')
	}
	for _, x := range r.Policies {
		fmt.Fprintf(&b, "%s %s:", x.Kind, x.NamespacedName)
		for _, a := range x.Ancestors {
			if len(x.Ancestors) > 1 {
				fmt.Fprintf(&b, "\n  %s %s:", *a.AncestorRef.Kind, parentName(a.AncestorRef))
			}
			fmt.Fprintf(&b, " %s", states(a.Conditions))
		}
		b.WriteByte('\n')
	}
	b.WriteString(counts + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// states is a short form of conditions. What only a process that serves can make
// true is left out.
func states(cs []metav1.Condition) string {
	var parts []string
	for _, c := range cs {
		switch {
		case c.Type == compile.ConditionParametersApplied && c.Status == metav1.ConditionTrue:
		case c.Status != metav1.ConditionTrue, c.Reason != c.Type:
			parts = append(parts, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
		case c.Type != string(gatewayv1.GatewayConditionProgrammed):
			parts = append(parts, fmt.Sprintf("%s=%s", c.Type, c.Status))
		}
	}
	return strings.Join(parts, " ")
}

func parentName(ref gatewayv1.ParentReference) string {
	name := string(ref.Name)
	if ref.Namespace != nil {
		name = string(*ref.Namespace) + "/" + name
	}
	if ref.SectionName != nil {
		name += " " + string(*ref.SectionName)
	}
	return name
}

// checked is what -o json prints of an object.
type checked struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Status    any    `json:"status"`
}

func checkJSON(w io.Writer, problems []compile.Problem, r *compile.Report) error {
	objects := []checked{}
	for _, x := range r.Classes {
		objects = append(objects, checked{"GatewayClass", "", x.Name, x.Status})
	}
	for _, x := range r.Gateways {
		objects = append(objects, checked{"Gateway", x.Namespace, x.Name, x.Status})
	}
	for _, x := range r.Routes {
		objects = append(objects, checked{x.Kind, x.Namespace, x.Name, gatewayv1.RouteStatus{Parents: x.Parents}})
	}
	for _, x := range r.Policies {
		objects = append(objects, checked{x.Kind, x.Namespace, x.Name, gatewayv1.PolicyStatus{Ancestors: x.Ancestors}})
	}
	if problems == nil {
		problems = []compile.Problem{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Problems []compile.Problem `json:"problems"`
		Objects  []checked         `json:"objects"`
	}{problems, objects})
}
