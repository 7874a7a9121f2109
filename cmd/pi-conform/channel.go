package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/conformance/report"
	loopsuite "github.com/pi-conform/pi-conform/conformance/suite"
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

// chosen is what a run is to judge.
type chosen struct {
	cases []*harness.CaseFile
	rules []string // patterns
	// channel are the rules for the channel of progress; nil leaves it out.
	channel []progress.Rule
}

// choose finds out what the flags choose. The channel of progress goes by the name
// of a case, and belongs to the first shard.
func (f *runFlags) choose() (*chosen, error) {
	cases, err := loopsuite.Cases()
	if err != nil {
		return nil, err
	}
	self := func(name string) string { return name }
	names, err := pick.Filter("case", append(caseNames(cases), channelCase), self, f.run, f.skip)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	c := &chosen{cases: slices.DeleteFunc(cases, func(c *harness.CaseFile) bool { return !slices.Contains(names, c.Name) })}
	if slices.Contains(names, channelCase) && f.part.Index <= 1 {
		c.channel = progress.Rules()
	}
	if err := c.chooseRules(f.rules); err != nil {
		return nil, err
	}
	if len(c.cases) == 0 && c.channel == nil && f.part.Count == 0 {
		return nil, exit.Usagef("no case is left that the chosen rules are about")
	}
	return c, nil
}

// chooseRules leaves out the cases, or the channel, if no rule for them is chosen.
func (c *chosen) chooseRules(patterns []string) error {
	if len(patterns) == 0 {
		return nil
	}
	var channel []progress.Rule
	for _, pattern := range patterns {
		ofChannel := progressRules([]string{pattern})
		channel = append(channel, ofChannel...)
		if _, err := conformance.Select(pattern); err == nil {
			c.rules = append(c.rules, pattern)
		} else if len(ofChannel) == 0 {
			return exit.With(exit.Usage, err)
		}
	}
	if len(c.rules) == 0 {
		c.cases = nil
	}
	if c.channel != nil {
		c.channel = channel
	}
	return nil
}

// judgeChannel runs the subject's channel of progress, if it has one, and adds
// what came of it to the report.
func judgeChannel(ctx context.Context, f *runFlags, rules []progress.Rule, s *subjects.Subject, rep *report.Report) {
	if s.Channel == nil || rules == nil || ctx.Err() != nil {
		return
	}
	c := newChannelReport(s, rules)
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

func newChannelReport(s *subjects.Subject, rules []progress.Rule) *channelReport {
	c := &channelReport{subject: s}
	for _, r := range rules {
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
	c := newChannelReport(s, progress.Rules())
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
