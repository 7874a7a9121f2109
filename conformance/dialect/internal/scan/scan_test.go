package scan_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
)

func TestObject(t *testing.T) {
	s := scan.New([]byte(` {"a" : "x\n\u00e9\ud83d\ude00", "b":[1, {"c":null}], "d":true, "e":-1.5e3, "long":"` + strings.Repeat("y", 100) + `\\"} `))
	var got []string
	s.Object(func(name []byte) {
		switch string(name) {
		case "a", "long":
			got = append(got, s.String())
		case "b":
			s.Array(func() { got = append(got, string(s.Raw())) })
		case "d":
			if s.Bool() {
				got = append(got, "yes")
			}
		}
	})
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := []string{"x\né😀", "1", `{"c":null}`, "yes", strings.Repeat("y", 100) + `\`}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}

func TestFaults(t *testing.T) {
	for text, cut := range map[string]bool{
		``: true, `{`: true, `{"a"`: true, `{"a":`: true, `{"a":"x`: true, `{"a":"x\`: true, `[1,`: true, `tru`: true,
		`{"a":1,}`: false, `[1 2]`: false, `{a:1}`: false, `{"a" 1}`: false, `{"a":1}{`: false, "\"a\x01\"": false, `nope`: false,
		strings.Repeat("[", 2000): false,
	} {
		s := scan.New([]byte(text))
		s.Skip()
		err := s.End()
		if err == nil || errors.Is(err, scan.ErrCut) != cut {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// FuzzSkip holds the scanner to the standard library: what that takes, it takes.
func FuzzSkip(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\u00e9",null]}`, `"\ud83d\ude00"`, `[{}`, `-1.0e+5`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scan.New(text)
		s.Skip()
		if err := s.End(); err != nil && json.Valid(text) && !strings.Contains(err.Error(), "deep") {
			t.Errorf("%q: %v", text, err)
		}
		var want string
		if json.Unmarshal(text, &want) != nil || strings.ContainsRune(want, '\ufffd') {
			return
		}
		if got := scan.New(text).String(); got != want && string(text) != "null" {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	})
}
