// Under the network: the whole run at a glance, and who waited and held around the step at hand.

import { scale } from "./type.js";
import { total } from "./words.js";

const BEFORE = 0.68; // of the strip's width is the past

export class Strip {
  constructor(overview, gantt, colour) {
    this.overviewCanvas = overview;
    this.ganttCanvas = gantt;
    this.colour = colour;
    this.course = null;
    this.span = null; // chosen steps
    this.pixels = 9; // per step
    this.zoomed = false; // by hand
  }

  show(run) {
    this.run = run;
    this.course = null;
    this.span = null;
    this.cache = new WeakMap();
  }

  prepare(canvas) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return { pen, width, height };
  }

  overview(position) {
    const { pen, width, height } = this.prepare(this.overviewCanvas);
    const { run, colour, course } = this;
    if (!run) return;
    if (course) {
      const parts = course.used.length;
      const top = Math.max(1, ...course.waiting);
      const step = width / parts;
      pen.fillStyle = colour["waiting-soft"];
      pen.beginPath();
      pen.moveTo(0, height);
      course.waiting.forEach((value, i) => {
        pen.lineTo(i * step, height - (value / top) * (height - 4));
        pen.lineTo((i + 1) * step, height - (value / top) * (height - 4));
      });
      pen.lineTo(width, height);
      pen.fill();
      pen.fillStyle = colour.inside;
      course.used.forEach((value, i) => {
        const tall = Math.min(1, value / run.permits) * (height - 8) * 0.8;
        if (value) pen.fillRect(i * step, height - tall, Math.max(step - (step > 4 ? 1 : 0), 0.6), tall);
        if (value > run.permits) {
          pen.fillStyle = colour.bad;
          pen.fillRect(i * step, 0, Math.max(step, 2), height);
          pen.fillStyle = colour.inside;
        }
      });
    }
    pen.fillStyle = colour.bad;
    for (const found of run.about.violated) pen.fillRect((found.step / Math.max(run.steps, 1)) * width - 1.5, 0, 3, height);
    const x = (position / Math.max(run.steps, 1)) * width;
    pen.fillStyle = colour.accent;
    pen.fillRect(x - 1, 0, 2, height);
  }

  // Who waited and held in this window, and what was sent.
  pieces(window) {
    let known = this.cache.get(window);
    if (known) return known;
    const clients = new Map();
    const bars = [];
    const arrows = [];
    const marks = [];
    const acts = []; // which node acts in which step
    for (const [number, node, want, priority, asked, entered] of window.snapshot.clients) clients.set(number, { node, want, priority, asked: Math.max(asked, window.first - 1), entered: entered < 0 ? -1 : Math.max(entered, window.first - 1) });
    const close = (client, step) => {
      if (client.entered < 0) bars.push({ ...client, from: client.asked, to: step, held: false });
      else {
        if (client.entered > client.asked) bars.push({ ...client, from: client.asked, to: client.entered, held: false });
        bars.push({ ...client, from: client.entered, to: step, held: true });
      }
    };
    window.steps.forEach((lines, place) => {
      const step = window.first + place;
      if (lines.length) acts.push([step, lines[0].node ?? -1]);
      for (const line of lines) {
        if (line.event === "request") clients.set(line.client, { node: line.node, want: total(line.want ?? 1), priority: line.priority ?? 0, asked: step, entered: -1 });
        else if (line.event === "enter" && clients.has(line.client)) clients.get(line.client).entered = step;
        else if (["leave", "withdraw", "lease-lost"].includes(line.event)) {
          if (clients.has(line.client)) close(clients.get(line.client), step);
          clients.delete(line.client);
        } else if (line.event === "send") arrows.push({ from: line.node, to: line.to, step, arrives: window.arrivals.get(line.id) || 0, token: line.tokens > 0 });
        else if (line.event === "link-up" || line.event === "link-down") marks.push({ step, node: line.node, down: line.event === "link-down" });
      }
    });
    for (const client of clients.values()) close(client, window.last);
    known = { bars, arrows, marks, acts };
    this.cache.set(window, known);
    return known;
  }

  gantt(position, selected) {
    const { pen, width, height } = this.prepare(this.ganttCanvas);
    const { run, colour } = this;
    if (!run) return;
    const left = 40;
    const wide = width - left;
    this.left = left;
    if (!this.zoomed) this.pixels = Math.min(Math.max(wide / (run.steps + 2), 9), 64);
    const shownSteps = wide / this.pixels;
    let from = position - shownSteps * BEFORE;
    if (run.steps < shownSteps) from = 0;
    else from = Math.min(Math.max(from, 0), run.steps - shownSteps + 2);
    this.from = from;
    const to = from + shownSteps;
    const windows = [];
    for (let number = run.number(Math.max(1, Math.floor(from))); number <= run.number(Math.min(run.steps, Math.ceil(to))); number += 1) {
      const window = run.windows.get(number);
      if (window) windows.push(this.pieces(window));
      else run.load(number).catch(() => {});
    }
    const most = Math.floor((height - 22) / 10);
    let rows = [];
    if (run.size <= most) rows = Array.from({ length: run.size }, (_, i) => i);
    else {
      const active = new Set();
      if (selected >= 0) active.add(selected);
      const near = [];
      for (const { acts } of windows) for (const [step, node] of acts) if (Math.abs(step - position) < 12) near.push({ node, held: false, acts: true, from: step });
      near.sort((a, b) => Math.abs(a.from - position) - Math.abs(b.from - position));
      for (const one of near) if (active.size < most && one.node >= 0) active.add(one.node); // who acts now is always there
      near.length = 0;
      for (const { bars } of windows) for (const bar of bars) if (bar.to >= from && bar.from <= to) near.push(bar);
      near.sort((a, b) => Number(b.held) - Number(a.held) || Math.abs(a.from - position) - Math.abs(b.from - position));
      for (const bar of near) if (active.size < most) active.add(bar.node);
      rows = [...active].sort((a, b) => a - b);
    }
    this.rows = rows;
    const tall = Math.min(34, (height - 22) / Math.max(rows.length, 1));
    this.tall = tall;
    const row = new Map(rows.map((node, i) => [node, i]));
    const x = (step) => left + (step - from) * this.pixels;
    const y = (node) => 4 + (row.get(node) + 0.5) * tall;
    pen.font = `${11 * Math.min(scale(), 1.4)}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    for (const node of rows) {
      pen.fillStyle = colour.grid;
      pen.fillRect(left, y(node) - 0.5, wide, 1);
      pen.fillStyle = node === selected ? colour.accent : colour.muted;
      pen.textAlign = "right";
      pen.fillText(run.called(node).slice(0, 6), left - 8, y(node));
    }
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, wide, height);
    pen.clip();
    if (this.span) {
      pen.fillStyle = colour["waiting-soft"];
      pen.fillRect(x(this.span[0] - 0.5), 0, (this.span[1] - this.span[0] + 1) * this.pixels, height);
    }
    for (const { arrows } of windows) {
      for (const { from: a, to: b, step, arrives, token } of arrows) {
        if (!row.has(a) && !row.has(b)) continue;
        const ends = [x(step), row.has(a) ? y(a) : height - 20, x(arrives || run.steps), row.has(b) ? y(b) : height - 20];
        pen.beginPath(); // of a node without a row: to or from the edge
        pen.moveTo(ends[0], ends[1]);
        pen.lineTo(ends[2], ends[3]);
        pen.setLineDash(row.has(a) && row.has(b) ? [] : [2, 3]);
        pen.strokeStyle = token ? colour.token : colour.link;
        pen.lineWidth = token ? 2 : 1;
        pen.globalAlpha = arrives ? 1 : 0.35;
        pen.stroke();
      }
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const bar = Math.max(3, Math.min(14, tall * 0.62));
    for (const { bars, marks } of windows) {
      for (const piece of bars) {
        if (!row.has(piece.node) || piece.to < from - 1 || piece.from > to + 1) continue;
        const begins = x(piece.from);
        const long = Math.max((piece.to - piece.from) * this.pixels, 2);
        if (piece.held) {
          pen.fillStyle = colour.inside;
          pen.beginPath();
          pen.roundRect(begins, y(piece.node) - bar / 2, long, bar, 3);
          pen.fill();
          if (long > 16 && bar > 9 && run.permits > 1) {
            pen.fillStyle = colour.surface;
            pen.textAlign = "left";
            pen.fillText(String(piece.want), Math.max(begins, left) + 5, y(piece.node) + 0.5);
          }
        } else {
          pen.fillStyle = colour.waiting;
          pen.globalAlpha = 0.5;
          pen.fillRect(begins, y(piece.node) - 1, long, 2);
          pen.globalAlpha = 1;
        }
      }
      for (const mark of marks) {
        if (!row.has(mark.node)) continue;
        pen.fillStyle = mark.down ? colour.bad : colour.muted;
        pen.beginPath();
        pen.arc(x(mark.step), y(mark.node), 3, 0, 7);
        pen.fill();
      }
    }
    if (run.setup.loop) { // this part repeats for ever
      pen.fillStyle = colour["token-soft"];
      pen.globalAlpha = 0.6;
      pen.fillRect(x(run.setup.loop - 0.5), 0, (run.steps - run.setup.loop + 1) * this.pixels, 5);
      pen.globalAlpha = 1;
      pen.fillStyle = colour["token-text"];
      pen.textAlign = "left";
      pen.fillText("↻", x(run.setup.loop - 0.5), 10);
    }
    pen.fillStyle = colour.bad;
    for (const found of run.about.violated) pen.fillRect(x(found.step) - 1, 0, 2, height);
    pen.fillStyle = colour.accent;
    pen.fillRect(x(position) - 1, 0, 2, height);
    pen.textAlign = "center";
    pen.fillStyle = colour.muted;
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => step * this.pixels > 46) ?? 1000;
    for (let step = Math.ceil(from / every) * every; step <= Math.min(to, run.steps); step += every) pen.fillText(String(step), Math.max(x(step), left + 8), height - 8);
    pen.restore();
    if (rows.length < run.size) {
      pen.textAlign = "right";
      pen.fillStyle = colour.muted;
      pen.fillText(`${run.size - rows.length} of ${run.size} nodes have no row here`, width - 8, 9);
    }
  }

  stepAt(px) {
    return Math.round(Math.min(Math.max(this.from + (px - this.left) / this.pixels, 0), this.run.steps));
  }

  nodeAt(py) {
    return this.rows?.[Math.floor((py - 4) / this.tall)] ?? -1;
  }
}
