package release

import (
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platform is what an image runs on.
type Platform struct {
	Arch string // GOARCH
	Arm  string // GOARM, for arm only
}

// All returns the platforms that are released.
func All() []Platform {
	return []Platform{{Arch: "amd64"}, {Arch: "arm64"}, {Arch: "arm", Arm: "7"}}
}

// Host returns the platform of this machine.
func Host() Platform {
	for _, p := range All() {
		if p.Arch == runtime.GOARCH {
			return p
		}
	}
	return Platform{Arch: runtime.GOARCH}
}

// ParsePlatform reads a platform as container tools write it: linux/amd64,
// linux/arm64 or linux/arm/v7.
func ParsePlatform(s string) (Platform, error) {
	var known []string
	for _, p := range All() {
		if s == p.String() || s == p.String()+"/v8" && p.Arch == "arm64" {
			return p, nil
		}
		known = append(known, p.String())
	}
	return Platform{}, fmt.Errorf("platform %q is not one of %s", s, strings.Join(known, ", "))
}

// String returns the platform as container tools write it.
func (p Platform) String() string {
	if p.Arm != "" {
		return "linux/" + p.Arch + "/v" + p.Arm
	}
	return "linux/" + p.Arch
}

// file returns the platform as a part of a file's name: linux-armv7.
func (p Platform) file() string {
	if p.Arm != "" {
		return "linux-" + p.Arch + "v" + p.Arm
	}
	return "linux-" + p.Arch
}

func (p Platform) descriptor() *v1.Platform {
	d := &v1.Platform{OS: "linux", Architecture: p.Arch}
	if p.Arm != "" {
		d.Variant = "v" + p.Arm
	}
	return d
}
