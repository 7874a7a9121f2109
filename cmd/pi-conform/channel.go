package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

const (
	// channelCase is under which a report has what came of a channel of progress.
	channelCase = "progress"
	// channelSeeds are how many seeds a channel of progress is run under, and
	// channelFailures after how many without a verdict the rest is left out.
	channelSeeds, channelFailures = 40, 3
)

// wantsChannel reports whether the flags leave the channel of progress to be
// judged: it belongs to no case, and to the first shard.
func (f *runFlags) wantsChannel() bool {
	return f.run == nil && f.rules == nil && f.rerun == "" && f.part.Index <= 1
}

// judgeChannel runs the subject's channel of progress, if it has one, and adds
// what came of it to the report.
func judgeChannel(ctx context.Context, f *runFlags, s *subjects.Subject, rep *report.Report) {
	if s.Channel == nil || !f.wantsChannel() || ctx.Err() != nil {
		return
	}
	c := newChannelReport(s)
	for n := range channelSeeds {
		if len(c.unclear) == channelFailures || ctx.Err() != nil {
			rep.Partial = true
			break
		}
		c.run(ctx, n+1, f.seed+uint64(n))
	}
	rep.Cases++
	rep.Schedules += c.schedules
	rep.Rules = append(rep.Rules, c.rules...)
	rep.Findings = append(rep.Findings, c.findings...)
	rep.Unclear = append(rep.Unclear, c.unclear...)
	rep.Results = append(rep.Results, report.Result{Case: channelCase, Schedules: c.schedules})
	rep.Settle()
}

// channelReport is what comes of a channel of progress.
type channelReport struct {
	subject   *subjects.Subject
	chosen    []progress.Rule
	rules     []report.Rule
	findings  []report.Finding
	unclear   []report.Unclear
	schedules int
}

func newChannelReport(s *subjects.Subject) *channelReport {
	c := &channelReport{subject: s}
	for _, r := range progress.Rules() {
		rule := report.Rule{ID: r.ID, Level: r.Level, Status: conformance.StatusNotExercised}
		if reason := s.Channel.Lacks[r.ID]; reason != "" {
			rule.Status, rule.Reason = conformance.StatusNotApplicable, reason
		} else {
			c.chosen = append(c.chosen, r)
		}
		c.rules = append(c.rules, rule)
	}
	return c
}

// run runs the channel under one seed.
func (c *channelReport) run(ctx context.Context, number int, seed uint64) {
	c.schedules++
	record, err := c.subject.Channel.Record(ctx, seed)
	if err != nil {
		c.unclear = append(c.unclear, report.Unclear{Case: channelCase, Number: number, Outcome: outcomeOfError(err), Message: err.Error()})
		return
	}
	v := progress.Check(record, c.chosen)
	broken := map[string]bool{}
	for i := range v.Findings {
		if f := &v.Findings[i]; !broken[f.Rule] {
			broken[f.Rule] = true
			c.findings = report.AddFinding(c.findings, report.Finding{
				Rule: f.Rule, Level: conformance.Must, Message: f.Message, Case: channelCase, Number: number, Seed: &seed,
				Schedule: []string{}, Entries: []int{}, Count: 1, Replay: c.subject.Replay(fmt.Sprintf("%s@%d", channelCase, seed)),
			})
		}
	}
	for i := range c.rules {
		if id := c.rules[i].ID; v.Exercised[id] > 0 {
			c.rules[i].Add(said(v.Exercised[id], broken[id]))
		}
	}
}

// said is what one record says about a rule that it exercised.
func said(exercised int, broken bool) report.Rule {
	r := report.Rule{Status: conformance.StatusPass, Exercised: exercised, Schedules: 1}
	if broken {
		r.Status, r.Findings = conformance.StatusFail, 1
	}
	return r
}

// outcomeOfError is the subject's, or else that it broke.
func outcomeOfError(err error) trace.Outcome {
	if subject, ok := errors.AsType[*harness.SubjectError](err); ok {
		return subject.Outcome
	}
	if errors.Is(err, suite.ErrStuck) {
		return trace.OutcomeHung
	}
	return trace.OutcomeCrashed
}

// channelSeed is the seed in a token that means a run of a channel of progress.
func channelSeed(token string) (seed uint64, ok bool, err error) {
	text, ok := strings.CutPrefix(token, channelCase+"@")
	if !ok {
		return 0, false, nil
	}
	if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
		err = exit.Usagef("%q: what follows @ has to be a seed, a number", token)
	}
	return seed, true, err
}

// replayChannel runs the channel under one seed and shows what is wrong with it,
// or all of it.
func (p *program) replayChannel(ctx context.Context, f *replayFlags, seed uint64, names, command []string) error {
	s, err := p.open(ctx, &f.subjectFlags, names, command)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Channel == nil {
		return exit.Usagef("the subject has declared no channel of progress")
	}
	record, err := s.Channel.Record(ctx, seed)
	if err != nil {
		return exit.With(exit.Subject, err)
	}
	if f.step {
		if err := p.drawBreak(record, &progress.Finding{Entry: len(record.Entries) - 1}, len(record.Entries)); err != nil {
			return err
		}
	}
	c := newChannelReport(s)
	v := progress.Check(record, c.chosen)
	seen := map[string]bool{}
	for i := range v.Findings {
		finding := &v.Findings[i]
		if seen[finding.Rule] {
			continue
		}
		seen[finding.Rule] = true
		rule, _ := progress.Lookup(finding.Rule)
		p.out.Printf("%s %s\n", p.out.Bad(rule.ID), rule.Sentence)
		if err := p.drawBreak(record, finding, before); err != nil {
			return err
		}
		p.out.Printf("\n")
	}
	if len(seen) == 0 {
		p.out.Printf("%s\n", p.out.Good("no rule is broken"))
		return nil
	}
	return exit.Silently(exit.Broken)
}
