//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// shown is the lab that the tests of the scenarios share, one after the other.
var shown *lab

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "headgate-scale-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shown, err = newLab(context.Background(), dir, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "%v\nthe logs are in %s\n", err, dir)
		return 1
	}
	code = m.Run()
	err = shown.close()
	if shown.controller.command.ProcessState == nil {
		err = errors.Join(err, errors.New("the controller runs on"))
	}
	if err != nil || code != 0 {
		fmt.Fprintf(os.Stderr, "%v\nthe logs are in %s\n", err, dir)
		return 1
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
