module github.com/headgate/headgate/test/e2e

go 1.26.0

require (
	github.com/headgate/headgate/test/cluster v0.0.0-00010101000000-000000000000
	golang.org/x/net v0.62.0
)

require golang.org/x/sys v0.50.0 // indirect

replace github.com/headgate/headgate/test/cluster => ../cluster
