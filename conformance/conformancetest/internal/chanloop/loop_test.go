package chanloop_test

import (
	"testing"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
)

func TestConformance(t *testing.T) {
	conformancetest.Run(t, chanloop.Subject(""))
}
