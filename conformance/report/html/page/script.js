"use strict";
(() => {
  const svgSpace = "http://www.w3.org/2000/svg";
  const rowHeight = 26, context = 3, likeness = { alone: 0, line: 1 };

  // make builds an element. Text is only ever set as text: nothing that a
  // subject printed is parsed as markup.
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function draw(name, attributes) {
    const element = document.createElementNS(svgSpace, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  // unpacked puts rows that are the same on both sides where they belong.
  function unpacked(data) {
    const subject = data.subject.rows.map((row) => ({ ...row.row, payload: row.payload }));
    data.subject.rows = subject;
    if (data.reference) {
      data.reference.rows = data.reference.rows.map((row) => (row.as === undefined ? { ...row.row, payload: row.payload } : subject[row.as]));
    }
    return data;
  }

  // A Trace draws the traces of one finding into its place in the page.
  class Trace {
    constructor(host) {
      this.host = host;
      this.marks = (host.dataset.marks || "").split(" ").filter(Boolean).map(Number);
      this.data = unpacked(JSON.parse(document.getElementById("data-" + host.dataset.trace).textContent));
      this.unfolded = this.data.subject.rows.length <= 40;
      this.opened = new Set();
      this.view = this.data.reference && window.innerWidth >= 1100 ? "both" : "subject";
      this.place = host.querySelector(".trace");
      this.current = null;
      this.build();
    }

    build() {
      this.stage = make("div", { class: "stage" });
      this.title = make("h3");
      this.payload = make("pre", { tabindex: "0", "aria-label": "The whole entry" });
      const panel = make("div", { class: "payload-panel" }, this.title, this.payload);
      this.place.replaceChildren(this.bar(), this.stage, panel);
      this.place.addEventListener("keydown", (event) => this.key(event));
      this.refresh();
      const first = this.marks.length ? this.marks[this.marks.length - 1] : 0;
      this.select(this.button("subject", first) || this.place.querySelector("li button"));
    }

    bar() {
      const bar = make("div", { class: "bar" });
      if (this.data.reference) {
        const group = make("fieldset", {}, make("legend", { class: "hidden" }, "View"));
        for (const [value, label] of [["subject", "subject"], ["reference", "reference"], ["both", "side by side"]]) {
          group.append(make("label", {}, make("input", {
            type: "radio", name: "view-" + this.host.id, value, checked: value === this.view,
            onchange: () => { this.view = value; this.refresh(); },
          }), label));
        }
        bar.append(group);
      }
      this.unfold = make("button", { type: "button", onclick: () => this.toggleFolds() });
      bar.append(this.unfold);
      return bar;
    }

    toggleFolds() {
      this.unfolded = !this.unfolded;
      this.opened.clear();
      this.refresh();
    }

    refresh() {
      const kept = this.current && [this.current.dataset.side, Number(this.current.dataset.entry)];
      const focused = this.current && this.current === document.activeElement;
      this.unfold.textContent = this.unfolded ? "Fold" : "Show all entries";
      this.stage.className = "stage " + this.view;
      const lines = this.fold(this.lines());
      const sides = this.view === "both" ? ["subject", "reference"] : [this.view];
      this.stage.replaceChildren(...sides.map((side) => this.side(side, lines)));
      const again = kept && (this.button(...kept) || this.place.querySelector("li button"));
      if (again) this.select(again, focused);
    }

    // lines are what stands at each height: an entry of either trace or both.
    lines() {
      if (this.view === "both") return this.data.pairs.map(([a, b, like]) => ({ subject: a, reference: b, like }));
      return this.data[this.view].rows.map((_, i) => ({ [this.view]: i, like: 2 }));
    }

    // fold replaces lines that are far from what matters by one.
    fold(lines) {
      if (this.unfolded) return lines;
      const near = new Array(lines.length).fill(false);
      const keep = (i) => { for (let k = i - context; k <= i + context; k++) if (k >= 0 && k < near.length) near[k] = true; };
      const differs = lines.findIndex((line) => line.like === likeness.alone);
      lines.forEach((line, i) => { if (i === differs || this.isMarked(line)) keep(i); });
      if (!near.includes(true)) return lines;
      const folded = [];
      for (let i = 0; i < lines.length; i++) {
        if (near[i]) { folded.push(lines[i]); continue; }
        let end = i;
        while (end < lines.length && !near[end]) end++;
        if (end - i <= 2 || this.opened.has(this.view + i)) folded.push(...lines.slice(i, end));
        else folded.push({ fold: end - i, at: this.view + i });
        i = end - 1;
      }
      return folded;
    }

    isMarked(line) {
      return line.subject !== undefined && this.marks.includes(line.subject);
    }

    side(name, lines) {
      const trace = this.data[name];
      const heads = make("div", { class: "heads", "aria-hidden": "true" }, make("span", { class: "step" }));
      for (const lane of trace.lanes) heads.append(make("span", { class: lane.kind, title: lane.name }, lane.name));
      const list = make("ol", { "aria-label": "Entries of the " + name });
      lines.forEach((line) => list.append(this.item(name, trace, line)));
      const chart = make("div", { class: "chart" }, list);
      const title = this.host.classList.contains("single") && !this.data.reference ? [] : [make("h3", {}, name === "subject" ? "What the subject did" : "What the reference does")];
      const side = make("div", { class: "side" }, ...title, heads, chart);
      const lane = () => parseFloat(getComputedStyle(side).getPropertyValue("--lane")) || 52;
      requestAnimationFrame(() => {
        const width = lane();
        heads.parentElement.classList.toggle("narrow", width < 40);
        for (const gutter of list.querySelectorAll(".gutter")) gutter.style.width = (trace.lanes.length + 0.6) * width + "px";
        chart.prepend(this.lanes(name, trace, lines, width));
      });
      return side;
    }

    item(name, trace, line) {
      if (line.fold) {
        return make("li", { class: "fold" }, make("button", {
          type: "button", tabindex: "-1", "data-side": name, "aria-label": line.fold + " entries, folded",
          onclick: () => { this.opened.add(line.at); this.refresh(); },
        }, make("span", { class: "step" }), make("span", { class: "gutter" }), make("span", { class: "text" }, "⋮ " + line.fold + " entries")));
      }
      const index = line[name];
      if (index === undefined || index < 0) return make("li", { class: "blank", "aria-hidden": "true" });
      const row = trace.rows[index];
      const classes = [row.kind];
      const marked = name === "subject" && this.marks.includes(index);
      if (marked) classes.push("marked");
      else if (line.like === likeness.alone) classes.push("only");
      else if (line.like === likeness.line) classes.push("payload");
      const step = row.kind === "action" ? String(row.step) : "";
      const who = make("span", { class: "hidden" }, this.spoken(trace, row, marked, line));
      return make("li", { class: classes.join(" ") }, make("button", {
        type: "button", tabindex: "-1", "data-side": name, "data-entry": index,
        onclick: (event) => this.select(event.currentTarget), onfocus: (event) => this.select(event.currentTarget),
        onmousemove: (event) => this.show(event.currentTarget),
        onmouseleave: () => this.current && this.show(this.current),
      }, make("span", { class: "step" }, step), make("span", { class: "gutter" }), make("span", { class: "text" }, row.text), who));
    }

    // spoken says in words what lanes and colours say to the eye.
    spoken(trace, row, marked, line) {
      const from = trace.lanes[row.from].name, to = trace.lanes[row.to].name;
      const words = [from === to ? "in lane " + from : "from " + from + " to " + to];
      if (marked) words.push("clashes");
      if (line.like === likeness.alone) words.push("on this side only");
      if (line.like === likeness.line) words.push("differs in what is not shown here");
      return " (" + words.join(", ") + ")";
    }

    lanes(name, trace, lines, width) {
      const middle = (lane) => (lane + 0.5) * width;
      const height = (i) => (i + 0.5) * rowHeight;
      const picture = draw("svg", { width: (trace.lanes.length + 0.6) * width, height: lines.length * rowHeight, "aria-hidden": "true", focusable: "false" });
      const first = new Map(), last = new Map(), marks = [];
      const rows = lines.map((line) => (line.fold || !(line[name] >= 0) ? null : trace.rows[line[name]]));
      const alive = (lane, i) => { if (!first.has(lane)) first.set(lane, i); last.set(lane, i); };
      rows.forEach((row, i) => { if (row) { alive(row.from, i); alive(row.to, i); } });
      for (const [lane, from] of first) {
        const to = lane < 2 ? lines.length - 0.5 : last.get(lane);
        picture.append(draw("line", { class: "lifeline", x1: middle(lane), x2: middle(lane), y1: height(lane < 2 ? 0 : from), y2: height(to) }));
      }
      rows.forEach((row, i) => {
        if (!row) return;
        this.hop(picture, trace, row, middle, height(i), Math.min(6, width / 4));
        if (name === "subject" && this.marks.includes(row.entry)) marks.push([middle(row.to), height(i)]);
      });
      const right = trace.lanes.length * width;
      for (let i = 1; i < marks.length; i++) this.arrow(picture, marks[i - 1], marks[i], right + width * 0.25);
      return picture;
    }

    hop(picture, trace, row, middle, y, size) {
      const outside = row.from === 1 ? row.to : row.from;
      const kind = trace.lanes[row.from === row.to ? row.from : outside].kind;
      const from = middle(row.from), to = middle(row.to);
      if (from !== to) {
        const back = to > from ? -size : size;
        picture.append(draw("path", { class: "hop " + kind, d: `M${from} ${y}H${to + back}` }));
        picture.append(draw("path", { class: "hop-head " + kind, d: `M${to} ${y}l${back} ${-size * 0.7}v${size * 1.4}z` }));
      }
      picture.append(draw("circle", { class: "dot " + kind, cx: from, cy: y, r: from === to ? size * 0.85 : size * 0.6 }));
    }

    arrow(picture, [x1, y1], [x2, y2], right) {
      const d = `M${x1 + 8} ${y1}C${right} ${y1} ${right} ${y1} ${right} ${(y1 + y2) / 2}S${right} ${y2} ${x2 + 16} ${y2}`;
      picture.append(draw("path", { class: "clash-arrow", d }));
      picture.append(draw("path", { class: "clash-head", d: `M${x2 + 7} ${y2}l10 -5v10z` }));
    }

    button(side, entry) {
      return this.place.querySelector(`button[data-side="${side}"][data-entry="${entry}"]`);
    }

    select(button, focus) {
      if (!button) return;
      if (this.current && this.current !== button) { this.current.removeAttribute("aria-current"); this.current.tabIndex = -1; }
      this.current = button;
      button.setAttribute("aria-current", "step");
      button.tabIndex = 0;
      this.show(button);
      if (focus && document.activeElement !== button) button.focus();
    }

    show(button) {
      if (button.dataset.entry === undefined || button === this.shown) return;
      this.shown = button;
      const row = this.data[button.dataset.side].rows[Number(button.dataset.entry)];
      const time = row.time ? ", at " + row.time + " ms of virtual time" : "";
      this.title.textContent = `${button.dataset.side}, entry ${row.entry}, step ${row.step}${time}: ${row.text}`;
      this.payload.textContent = row.payload ? JSON.stringify(row.payload, null, 2) : "(too long to be shown here)";
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, pre")) return;
      const buttons = [...this.place.querySelectorAll(`li button[data-side="${this.current.dataset.side}"]`)];
      const at = buttons.indexOf(this.current);
      const steps = {
        ArrowDown: () => buttons[at + 1], j: () => buttons[at + 1], ArrowUp: () => buttons[at - 1], k: () => buttons[at - 1],
        Home: () => buttons[0], End: () => buttons[buttons.length - 1],
        n: () => this.nextMark(buttons, at), ArrowRight: () => this.across("reference"), ArrowLeft: () => this.across("subject"),
      };
      if (steps[event.key]) this.select(steps[event.key](), true);
      else if (event.key === "u") this.toggleFolds();
      else if (event.key === "v") this.nextView();
      else return;
      event.preventDefault();
    }

    nextMark(buttons, at) {
      const marked = buttons.filter((button) => button.parentElement.classList.contains("marked"));
      return marked.find((button) => buttons.indexOf(button) > at) || marked[0];
    }

    // across goes to what stands at the same height on the other side.
    across(side) {
      const here = [...this.current.closest("ol").children].indexOf(this.current.parentElement);
      const other = this.place.querySelector(`button[data-side="${side}"]`);
      const item = other && other.closest("ol").children[here];
      return item && item.querySelector("button");
    }

    nextView() {
      const radios = [...this.place.querySelectorAll("input[type=radio]")];
      if (!radios.length) return;
      const next = radios[(radios.findIndex((radio) => radio.checked) + 1) % radios.length];
      next.checked = true;
      next.dispatchEvent(new Event("change"));
    }
  }

  const traces = new Map();
  function open(host) {
    if (!traces.has(host) && Number(host.dataset.trace) >= 0) traces.set(host, new Trace(host));
    return traces.get(host);
  }

  const findings = [...document.querySelectorAll(".finding")];
  for (const finding of findings) finding.addEventListener("toggle", () => { if (finding.open) { open(finding); remember(finding.id); } });
  for (const single of document.querySelectorAll(".single")) open(single);
  window.addEventListener("resize", () => { for (const trace of traces.values()) trace.refresh(); });

  function remember(id) {
    if (location.hash.slice(1).split("~")[0] !== encodeURI(id)) history.replaceState(null, "", "#" + encodeURI(id));
  }

  // follow opens what the address names: a finding, perhaps with an entry of it,
  // as in #UPD-2:upd/late~17.
  function follow() {
    let name;
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const [id, entry] = name.split("~");
    const finding = id && document.getElementById(id);
    if (!finding || !finding.classList.contains("finding")) return;
    finding.hidden = false;
    finding.open = true;
    const trace = open(finding);
    finding.scrollIntoView();
    if (trace && entry) { trace.unfolded = true; trace.refresh(); trace.select(trace.button("subject", Number(entry)), true); }
    else finding.querySelector("summary").focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", follow);
  follow();

  const filter = document.getElementById("filter"), level = document.getElementById("level"), shown = document.getElementById("shown");
  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const finding of findings) {
      const text = finding.querySelector("summary").textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) && (!level.value || finding.dataset.level === level.value);
      finding.hidden = !fits;
      if (fits) count++;
    }
    shown.textContent = count === findings.length ? count + " findings" : count + " of " + findings.length + " findings";
  }
  if (filter) { filter.addEventListener("input", narrow); level.addEventListener("change", narrow); }

  async function copy(button) {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // not allowed to: select it, so that a key copies it
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copy(button));
})();
