package console

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Progress tells of a run while it goes on: a line for every family of cases
// that is done and, on a terminal, one that is written over and over.
type Progress struct {
	c  *Console
	mu sync.Mutex

	families map[string]*family
	width    int
	done     int
	total    int

	began     time.Time
	schedules int
	failed    int // cases
}

type family struct {
	cases, left, schedules int
	failed                 int // cases
	unclear                int // cases
	rules                  []string
}

// Family is the first part of a case's name.
func Family(name string) string {
	before, _, found := strings.Cut(name, "/")
	if !found {
		return "cases"
	}
	return before
}

// NewProgress expects the cases of those names.
func (c *Console) NewProgress(cases []string) *Progress {
	p := &Progress{c: c, families: map[string]*family{}, total: len(cases), began: time.Now()}
	for _, name := range cases {
		f := p.families[Family(name)]
		if f == nil {
			f = &family{}
			p.families[Family(name)] = f
		}
		f.cases++
		f.left++
		p.width = max(p.width, len(Family(name)))
	}
	return p
}

// Case says that a case is done.
func (p *Progress) Case(name string, schedules int, broken []string, unclear bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.families[Family(name)]
	if f == nil {
		return
	}
	p.done++
	p.schedules += schedules
	if len(broken) > 0 {
		p.failed++
	}
	f.add(schedules, broken, unclear)
	p.clear()
	if f.left == 0 {
		p.line(Family(name), f)
	}
	p.live()
}

func (f *family) add(schedules int, broken []string, unclear bool) {
	f.left--
	f.schedules += schedules
	if len(broken) > 0 {
		f.failed++
	}
	if unclear {
		f.unclear++
	}
	for _, rule := range broken {
		if !slices.Contains(f.rules, rule) {
			f.rules = append(f.rules, rule)
		}
	}
}

func (p *Progress) line(name string, f *family) {
	mark, note := p.c.Good("ok  "), ""
	if f.unclear > 0 {
		mark = p.c.Warn("??  ")
		note = "  " + p.c.Warn(Count(f.unclear, "case")+" inconclusive")
	}
	if f.failed > 0 {
		mark = p.c.Bad("FAIL")
		slices.Sort(f.rules)
		note = fmt.Sprintf("  %s broke %s", Count(f.failed, "case"), few(f.rules, 6)) + note
	}
	p.c.Printf("%s  %-*s  %4s  %s%s\n", mark, p.width, name, Count(f.cases, "case"), Count(f.schedules, "schedule"), note)
}

// live is the line that is written over.
func (p *Progress) live() {
	if p.c.terminal && p.done < p.total {
		p.c.Printf("%s", p.c.Faint(p.state(time.Since(p.began))))
	}
}

// state says how far the run has come, how fast it goes, and how long it will
// take if it goes on like that.
func (p *Progress) state(since time.Duration) string {
	text := fmt.Sprintf("%d of %s", p.done, Count(p.total, "case"))
	if seconds := since.Seconds(); seconds > 0.5 {
		text += fmt.Sprintf(" · %.0f schedules/s", float64(p.schedules)/seconds)
	}
	if p.failed > 0 {
		text += " · " + Count(p.failed, "case") + " failed"
	}
	if since > 2*time.Second && p.done > 0 {
		left := since * time.Duration(p.total-p.done) / time.Duration(p.done)
		text += " · " + left.Round(time.Second).String() + " left"
	}
	return text
}

func (p *Progress) clear() {
	if p.c.terminal {
		p.c.Printf("\r\x1b[K")
	}
}

// End removes what is not to stay.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
