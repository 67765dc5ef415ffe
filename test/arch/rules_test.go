package arch

// module is the prefix of all paths that start with a dot below.
const module = "github.com/headgate/headgate"

// rule says what packages may import. A pattern is a path or, when it ends in
// "/...", a path and all below it; one that starts with a dot is within this
// module.
type rule struct {
	why  string
	from []string // whom it binds
	but  []string // whom it does not bind, though from names them

	// may is all that may be imported directly besides the standard library, by
	// what is not a test. An empty one is no restriction; see none.
	may []string
	// direct must not be imported directly, by tests neither.
	direct []string
	// never must not be reached, directly or through others. Tests, and what they
	// import, are bound as well.
	never []string
	// unless are the exceptions to never.
	unless []string
}

// none as the whole of may allows the standard library only.
const none = "none"

var importRules = []rule{
	{
		why:   "the data plane knows neither Kubernetes nor who drives it",
		from:  []string{"./dataplane/..."},
		never: []string{"k8s.io/...", "sigs.k8s.io/...", "./controllers/...", "./api/...", "./cmd/...", "./test/..."},
	},
	{
		why:    "the control plane knows of the data plane only what it compiles to",
		from:   []string{"./controllers/...", "./api/..."},
		never:  []string{"./dataplane/..."},
		unless: []string{"./dataplane/ir"},
	},
	{
		why:   "nothing imports the commands",
		from:  []string{"./..."},
		never: []string{"./cmd/..."},
	},
	{
		why:   "nothing imports the suites",
		from:  []string{"./..."},
		but:   []string{"./test/..."},
		never: []string{"./test/..."},
	},
	{
		why:    "only the reactor knows gnet",
		from:   []string{"./..."},
		but:    []string{"./dataplane/reactor", "./test/..."},
		direct: []string{"github.com/panjf2000/gnet/..."},
	},
	{why: "the IR is the contract: plain data", from: []string{"./dataplane/ir"}, may: []string{none}},
	{why: "messages belong to no version of HTTP", from: []string{"./dataplane/message"}, may: []string{none}},
	{why: "the model is arithmetic", from: []string{"./dataplane/ewma", "./dataplane/queueing"}, may: []string{none}},
	{
		why:  "decisions about pressure need the model only",
		from: []string{"./dataplane/pressure"},
		may:  []string{"./dataplane/ewma", "./dataplane/queueing"},
	},
	{why: "a codec does no I/O", from: []string{"./dataplane/http1"}, may: []string{"./dataplane/message"}},
	{
		why:  "a codec does no I/O",
		from: []string{"./dataplane/http2"},
		may:  []string{"./dataplane/message", "./dataplane/http1", "golang.org/x/net/http2/...", "golang.org/x/net/http/httpguts"},
	},
	{why: "TLS is a transformation of bytes", from: []string{"./dataplane/tlsterm"}, may: []string{"./dataplane/ir", "go.uber.org/zap/..."}},
	{
		why:  "the table and the filters are pure",
		from: []string{"./dataplane/route", "./dataplane/filter"},
		may:  []string{"./dataplane/ir", "./dataplane/message"},
	},
	{
		why:  "an upstream sees its connections through an interface of its own, not the reactor",
		from: []string{"./dataplane/upstream"},
		may: []string{
			"./dataplane/ir", "./dataplane/message", "./dataplane/http1", "./dataplane/http2", "./dataplane/ewma",
			"./dataplane/pressure", "./dataplane/metrics", "go.uber.org/zap/...",
		},
	},
	{why: "the reactor knows descriptors, not HTTP", from: []string{"./dataplane/reactor"}, may: []string{
		"github.com/panjf2000/gnet/v2/pkg/...", "golang.org/x/sys/unix", "go.uber.org/zap/...",
	}},
	{why: "a hand-over knows descriptors and two processes, not what they are for", from: []string{"./dataplane/handover"}, may: []string{
		"golang.org/x/sys/unix", "go.uber.org/zap/...",
	}},
	{why: "counters know nobody", from: []string{"./dataplane/metrics"}, may: []string{"github.com/prometheus/..."}},
	{why: "the access log knows nobody", from: []string{"./dataplane/accesslog"}, may: []string{"go.uber.org/zap/..."}},
	{
		why:  "the admin server only reads",
		from: []string{"./dataplane/admin"},
		may:  []string{"./dataplane/ir", "./dataplane/metrics", "github.com/prometheus/...", "go.uber.org/zap/..."},
	},
	{
		why:  "the exchange is built from the house's own parts",
		from: []string{"./dataplane"},
		// It sees the process before it through an interface of its own.
		direct: []string{"./dataplane/handover"},
		may:    []string{"./dataplane/...", "go.uber.org/zap/...", "golang.org/x/sys/unix"},
	},
	{
		why:  "compiling is pure: types, no clients",
		from: []string{"./controllers/compile"},
		may: []string{
			"./api/...", "./dataplane/ir", "k8s.io/api/...", "k8s.io/apimachinery/...", "sigs.k8s.io/gateway-api/...",
		},
	},
	{
		why:  "an API is types",
		from: []string{"./api/..."},
		may: []string{
			"./api/...", "k8s.io/api/...", "k8s.io/apimachinery/...", "sigs.k8s.io/gateway-api/...",
			"sigs.k8s.io/controller-runtime/pkg/scheme",
		},
	},
}

// bannedNames say nothing of what is in a package.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared", "lib"}

const (
	maxLines     = 600 // of a file
	maxTestLines = 800
)
