package html_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// emulate makes the browser prefer a colour scheme.
func emulate(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}

// awaited evaluates a script that gives a promise.
func awaited(script string, to any) chromedp.Action {
	return chromedp.Evaluate(script, to, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })
}

// screenshot writes what the window shows into a file.
func screenshot(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	var picture []byte
	do(t, ctx, chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
