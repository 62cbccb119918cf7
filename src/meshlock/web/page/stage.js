// The network on a canvas: nodes, links and which way is down, the token, messages on their way.

import { layout } from "./layout.js";
import { pair } from "./model.js";
import { scale } from "./type.js";

const NAMES = ["ground", "surface", "line", "text", "muted", "accent", "token", "token-soft", "token-text", "inside", "inside-soft", "waiting", "waiting-soft", "bad", "link", "node", "edge", "grid"];
const HEAD = 40; // pixels above the network, for the permits, in usual type
const MARGIN = 26; // pixels around the nodes, for what is written beside them
const POINTERS = ["father", "next", "last"]; // variables that name the way to the token

export class Stage {
  constructor(canvas, { head = HEAD, margin = MARGIN } = {}) {
    this.canvas = canvas;
    this.usualHead = head;
    this.margin = margin;
    this.pen = canvas.getContext("2d");
    this.run = null;
    this.snapshot = null;
    this.position = 0;
    this.selected = -1;
    this.over = null;
    this.view = { zoom: 1, x: 0, y: 0 };
    this.range = 0; // radio range in the nodes' own measure, where links follow it
    this.marked = []; // nodes that a comparison points out
    this.dragged = null; // { node, x, y } while a node is moved by hand
    this.places = [];
    this.drawing = 0; // milliseconds of the last frame
    this.recolour();
  }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    this.type = scale();
    this.head = this.usualHead * this.type;
    this.foot = undefined; // as high as the legend is now
    this.colour = {};
    for (const name of NAMES) this.colour[name] = style.getPropertyValue(`--${name}`).trim();
  }

  show(run) {
    this.run = run;
    this.view = { zoom: 1, x: 0, y: 0 };
    this.relayout();
  }

  relayout() {
    const { run } = this;
    let links = run.links;
    if (!links.length && run.setup.links !== "complete") links = linksSeen(run); // of live nodes: as they formed
    this.home = layout(run.size, links);
    const bounds = run.about.bounds;
    if (bounds) this.box = grown(bounds);
    else {
      const xs = this.home.map((p) => p.x);
      const ys = this.home.map((p) => p.y);
      this.box = grown([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]);
    }
    this.apart = run.size > 30 || bounds ? 0 : nearest(this.home); // in the nodes' own measure
    this.usual = run.size <= 12 ? 21 : run.size <= 30 ? 17 : run.size <= 80 ? 12 : run.size <= 250 ? 7 : run.size <= 600 ? 4.5 : 3.4;
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (this.canvas.width !== Math.round(clientWidth * ratio) || this.canvas.height !== Math.round(clientHeight * ratio)) {
      this.canvas.width = Math.round(clientWidth * ratio);
      this.canvas.height = Math.round(clientHeight * ratio);
    }
    this.ratio = ratio;
    this.width = clientWidth;
    this.height = clientHeight;
    this.foot ??= (document.getElementById("legend")?.offsetHeight ?? 0) + 14; // the legend's
    this.radius = this.usual;
    const apart = this.apart * this.fit();
    if (apart) this.radius = Math.min(Math.max(apart * 0.14, Math.min(this.usual, apart * 0.2)), 38 * this.type);
    if (apart > 38) this.radius = Math.max(this.radius, 9.5); // there is room for names
  }

  // How large the whole network may be: pixels for one unit of the nodes' own measure.
  fit() {
    const [x1, y1, x2, y2] = this.box;
    const margin = this.radius + this.margin;
    const high = this.height - this.head - this.foot - 2 * margin;
    return Math.max(Math.min((this.width - 2 * margin) / (x2 - x1), high / (y2 - y1)), 1e-9);
  }

  // The scale of the picture: pixels for one unit of the nodes' own measure.
  scale() {
    return this.fit() * this.view.zoom;
  }

  get middle() {
    return (this.head + this.height - this.foot) / 2;
  }

  toScreen(x, y) {
    const [x1, y1, x2, y2] = this.box;
    const scale = this.scale();
    return {
      x: this.width / 2 + (x - (x1 + x2) / 2) * scale + this.view.x,
      y: this.middle + (y - (y1 + y2) / 2) * scale + this.view.y,
    };
  }

  fromScreen(px, py) {
    const [x1, y1, x2, y2] = this.box;
    const scale = this.scale();
    return {
      x: (px - this.width / 2 - this.view.x) / scale + (x1 + x2) / 2,
      y: (py - this.middle - this.view.y) / scale + (y1 + y2) / 2,
    };
  }

  // Where a node is at this time, in its own measure.
  place(node, time, paths) {
    if (this.dragged?.node === node) return this.dragged;
    const path = paths?.get(node);
    if (!path || !path.length) return this.run.about.bounds ? { x: this.box[0], y: this.box[1] } : this.home[node];
    if (this.run.about.driven) { // moved by hand: it is where it was put last
      let at = path[0];
      for (const point of path) if (point[0] <= time) at = point;
      return { x: at[1], y: at[2] };
    }
    let last = 0;
    while (last + 1 < path.length && path[last + 1][0] <= time) last += 1;
    const [t1, x1, y1] = path[last];
    if (last + 1 >= path.length || time <= t1) return { x: x1, y: y1 };
    const [t2, x2, y2] = path[last + 1];
    const part = t2 > t1 ? (time - t1) / (t2 - t1) : 1;
    return { x: x1 + (x2 - x1) * part, y: y1 + (y2 - y1) * part };
  }

  time(position) {
    const step = Math.floor(position);
    const now = this.run.time(step);
    const next = step < this.run.steps ? this.run.time(step + 1) || now : now;
    return now + (next - now) * (position - step);
  }

  draw(position) {
    const began = performance.now();
    const { run, snapshot, pen } = this;
    if (run) this.resize();
    this.labels = []; // the boxes of what is written on the canvas
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    if (!run || !snapshot) return;
    this.position = position;
    const time = this.time(position);
    const paths = run.window(Math.max(snapshot.step, 1))?.paths;
    this.places.length = run.size;
    for (let node = 0; node < run.size; node += 1) {
      const { x, y } = this.place(node, time, paths);
      this.places[node] = this.toScreen(x, y);
    }
    this.r = Math.max(2.2, this.radius * Math.min(Math.sqrt(this.view.zoom), 2.2));
    if (this.range && this.selected >= 0) this.drawRange(this.places[this.selected]);
    this.drawLinks();
    this.drawNodes();
    this.drawMessages();
    this.drawing = performance.now() - began;
  }

  drawRange(at) {
    const { pen, colour } = this;
    pen.beginPath();
    pen.arc(at.x, at.y, this.range * this.scale(), 0, 7);
    pen.globalAlpha = 0.5;
    pen.fillStyle = colour["waiting-soft"];
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = colour.waiting;
    pen.setLineDash([3, 5]);
    pen.stroke();
    pen.setLineDash([]);
  }

  drawLinks() {
    const { pen, colour, snapshot, places } = this;
    const ends = [];
    pen.beginPath();
    for (const link of snapshot.links) {
      const cut = link.indexOf("-");
      const one = +link.slice(0, cut);
      const other = +link.slice(cut + 1);
      const a = places[one];
      const b = places[other];
      if (!a || !b) continue;
      pen.moveTo(a.x, a.y);
      pen.lineTo(b.x, b.y);
      ends.push(one, other);
    }
    pen.strokeStyle = colour.link;
    pen.lineWidth = this.run.size > 250 ? 0.8 : 1.6;
    pen.stroke();
    this.cut = [];
    if (this.run.about.driven) {
      pen.beginPath();
      for (const link of this.run.links) {
        if (snapshot.links.has(link)) continue;
        const [one, other] = link.split("-").map(Number);
        pen.moveTo(places[one].x, places[one].y);
        pen.lineTo(places[other].x, places[other].y);
        this.cut.push(one, other);
      }
      pen.setLineDash([2, 6]);
      pen.stroke();
      pen.setLineDash([]);
    }
    if (this.over?.link) {
      const [one, other] = this.over.link.split("-").map(Number);
      pen.beginPath();
      pen.moveTo(places[one].x, places[one].y);
      pen.lineTo(places[other].x, places[other].y);
      pen.strokeStyle = colour.bad;
      pen.lineWidth = 3.5;
      pen.stroke();
    }
    this.ends = ends;
    if (snapshot.variables.length) this.drawDirections(ends);
  }

  // Arrows: downhill where nodes have heights, else along the variable that leads to the token.
  drawDirections(ends) {
    const { pen, colour, snapshot, places, r } = this;
    const { variables } = snapshot;
    pen.fillStyle = colour.edge;
    pen.beginPath();
    if (Array.isArray(variables[0].height)) {
      for (let i = 0; i < ends.length; i += 2) {
        const down = compare(variables[ends[i]].height, variables[ends[i + 1]].height) > 0;
        const from = places[ends[i + (down ? 0 : 1)]];
        const to = places[ends[i + (down ? 1 : 0)]];
        arrow(pen, from, to, 0.5, Math.max(3, r * 0.3));
      }
    } else {
      const name = POINTERS.find((known) => typeof variables[0][known] === "number");
      if (name) {
        variables.forEach((state, node) => {
          const to = state[name];
          if (to >= 0 && to < places.length && to !== node) arrow(pen, places[node], places[to], 0.5, Math.max(3, r * 0.3));
        });
      }
    }
    pen.fill();
  }

  drawNodes() {
    const { pen, colour, snapshot, places, r, run } = this;
    const waiting = new Map();
    const inside = new Map();
    for (const client of snapshot.clients.values()) {
      if (client.entered >= 0) inside.set(client.node, (inside.get(client.node) ?? 0) + client.want);
      else {
        const known = waiting.get(client.node);
        waiting.set(client.node, { priority: Math.max(known?.priority ?? -Infinity, client.priority), count: (known?.count ?? 0) + 1, want: client.want });
      }
    }
    const big = r >= 9;
    const acted = run.lines(snapshot.step)[0]?.node ?? -1;
    for (const node of snapshot.tokens.keys()) {
      const at = places[node];
      if (!at) continue;
      pen.beginPath();
      pen.arc(at.x, at.y, r + Math.max(5, r * 0.42), 0, 7);
      pen.fillStyle = colour.token;
      pen.globalAlpha = 0.3;
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      pen.strokeStyle = colour.token;
      pen.stroke();
    }
    this.drawMarked();
    this.drawChosen();
    if (big) {
      for (let node = 0; node < run.size; node += 1) this.drawNode(node, inside.get(node), waiting.get(node), node === acted);
    } else {
      const groups = [[], [], []];
      for (let node = 0; node < run.size; node += 1) groups[inside.has(node) ? 2 : waiting.has(node) ? 1 : 0].push(node);
      const fills = [colour.edge, colour.waiting, colour.inside];
      groups.forEach((nodes, kind) => {
        pen.beginPath();
        for (const node of nodes) {
          const at = places[node];
          const size = kind === 2 ? r * 1.5 : r;
          pen.moveTo(at.x + size, at.y);
          pen.arc(at.x, at.y, size, 0, 7);
        }
        pen.fillStyle = fills[kind];
        pen.fill();
      });
    }
  }

  drawMarked() {
    const { pen, colour, places, r } = this;
    for (const node of this.marked) {
      if (!places[node]) continue;
      pen.beginPath();
      pen.arc(places[node].x, places[node].y, r + Math.max(9, r * 0.6), 0, 7);
      pen.setLineDash([5, 4]);
      pen.lineWidth = 2.5;
      pen.strokeStyle = colour.bad;
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  drawChosen() {
    const { pen, colour, places, r } = this;
    for (const node of [this.selected, this.over?.node ?? -1]) {
      if (node < 0 || !places[node]) continue;
      pen.beginPath();
      pen.arc(places[node].x, places[node].y, r + 5, 0, 7);
      pen.lineWidth = 2.5;
      pen.strokeStyle = colour.accent;
      pen.stroke();
    }
  }

  drawNode(node, held, waits, acted) {
    const { pen, colour, snapshot, r, run } = this;
    const at = this.places[node];
    pen.beginPath();
    pen.arc(at.x, at.y, r, 0, 7);
    pen.globalAlpha = snapshot.gone.has(node) ? 0.35 : 1;
    pen.fillStyle = held ? colour.inside : waits ? colour["waiting-soft"] : colour.node;
    pen.fill();
    pen.lineWidth = acted ? 3.5 : 2;
    pen.strokeStyle = held ? colour.inside : waits ? colour.waiting : acted ? colour.text : colour.edge;
    pen.stroke();
    const name = run.called(node);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = held ? colour.surface : colour.text;
    if (name.length <= 3) {
      pen.font = `650 ${Math.round(r * 0.82)}px system-ui, sans-serif`;
      pen.fillText(name, at.x, at.y + 0.5);
      this.labels.push(boxOf(at.x, at.y, pen.measureText(name).width, r * 0.7, name));
    } else {
      const size = 12 * this.type;
      pen.font = `600 ${size}px system-ui, sans-serif`;
      pen.fillStyle = colour.text;
      pen.fillText(name, at.x, at.y + r + size + 1);
      this.labels.push(boxOf(at.x, at.y + r + size + 1, pen.measureText(name).width, size, name));
    }
    pen.globalAlpha = 1;
    const small = Math.max(10, Math.min(r * 0.56, 15 * this.type));
    pen.font = `650 ${Math.round(small)}px system-ui, sans-serif`;
    const up = Math.max(r * 0.86, small * 0.75 + r * 0.35 + 1); // badges leave the name free
    if (snapshot.tokens.has(node) && run.permits > 1) this.badge(at.x + r * 0.86, at.y + up, String(snapshot.free.get(node) ?? 0), colour.token, colour.surface, small);
    if (waits) this.badge(at.x + r * 0.86, at.y - up, (waits.want > 1 ? `${waits.want}×` : "") + `p${waits.priority}` + (waits.count > 1 ? ` +${waits.count - 1}` : ""), colour.waiting, colour.surface, small);
    if (held && run.permits > 1) this.badge(at.x - r * 0.86, at.y - up, String(held), colour.surface, colour.inside, small, colour.inside);
  }

  badge(x, y, text, fill, ink, size, edge) {
    const { pen } = this;
    const width = Math.max(size * 1.5, pen.measureText(text).width + size * 0.8);
    const height = size * 1.5;
    x = Math.min(Math.max(x, width / 2 + 2), this.width - width / 2 - 2);
    this.labels.push(boxOf(x, y, width, height, text));
    pen.beginPath();
    pen.roundRect(x - width / 2, y - height / 2, width, height, height / 2);
    pen.fillStyle = fill;
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = edge ?? this.colour.surface;
    pen.stroke();
    pen.fillStyle = ink;
    pen.fillText(text, x, y + 0.5);
  }

  drawMessages() {
    const { pen, colour, snapshot, places, position, run, r } = this;
    this.spots = [];
    const big = r >= 9 && snapshot.flying.size <= 60;
    const drawn = [];
    for (const [a, b, way] of this.ways()) {
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      const length = Math.hypot(dx, dy) || 1;
      const gap = Math.min((r + 16) / length, 0.4);
      if (big) spread(way, 17 / (length * (1 - 2 * gap)));
      for (const one of way) drawn.push(this.drawMessage(a, { dx, dy, length, gap }, one, big));
    }
    if (big) for (const one of drawn) this.name(one);
  }

  // The messages on their way, by sender and receiver, those in front first.
  ways() {
    const { snapshot, places, position, run } = this;
    const ways = new Map();
    for (const message of snapshot.flying.values()) {
      const key = message.from * run.size + message.to;
      if (!places[message.from] || !places[message.to]) continue;
      let way = ways.get(key);
      if (!way) ways.set(key, (way = [places[message.from], places[message.to], []]));
      const arrives = run.arrival(Math.max(snapshot.step, 1), message.id);
      let part;
      if (run.about.driven) {
        // by hand nobody knows yet when it will arrive: it waits on its way
        const until = arrives ? Math.min(position, arrives - 1) : position;
        part = Math.max(0.04, Math.min(0.6, (until - message.step) * 0.6) - way[2].length * 0.16);
        if (arrives && position > arrives - 1) part += (1 - part) * (position - arrives + 1);
      } else if (arrives > message.step) part = (position - message.step) / (arrives - message.step);
      else part = Math.min(0.5, (position - message.step) * 0.05);
      way[2].push({ message, part: Math.min(Math.max(part, 0), 1) });
    }
    return ways.values();
  }

  drawMessage(a, { dx, dy, length, gap }, { message, part }, big) {
    const { pen, colour, snapshot } = this;
    const along = gap + (1 - 2 * gap) * part;
    const direct = snapshot.links.has(pair(message.from, message.to));
    const aside = (big ? 9 : 3) + (direct ? 0 : Math.sin(along * Math.PI) * Math.min(40, length * 0.15));
    const x = a.x + dx * along - (dy / length) * aside;
    const y = a.y + dy * along + (dx / length) * aside;
    this.spots.push({ x, y, message });
    const token = message.tokens > 0;
    const fill = token ? colour.token : message.permits > 0 ? colour.inside : colour.accent;
    pen.fillStyle = fill;
    pen.beginPath();
    if (!big) {
      pen.arc(x, y, token ? 6 : 2.4, 0, 7);
      pen.fill();
      return null;
    }
    const angle = Math.atan2(dy, dx);
    const size = token ? 9 : 7;
    if (token) pen.arc(x, y, size, 0, 7);
    else {
      pen.moveTo(x + Math.cos(angle) * size * 1.3, y + Math.sin(angle) * size * 1.3);
      pen.lineTo(x + Math.cos(angle + 2.4) * size, y + Math.sin(angle + 2.4) * size);
      pen.lineTo(x + Math.cos(angle - 2.4) * size, y + Math.sin(angle - 2.4) * size);
      pen.closePath();
    }
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = this.over?.message === message.id ? colour.text : colour.surface;
    pen.stroke();
    return { x, y, message, fill, out: [-dy / length, dx / length] };
  }

  name({ x, y, message, fill, out }) {
    const { pen, colour, run } = this;
    const token = message.tokens > 0;
    const text = token && run.permits > 1 ? `${message.message} ${message.permits}` : message.message;
    const type = Math.min(Math.max(10.5, this.r * 0.4), 14) * this.type;
    pen.font = `600 ${type}px system-ui, sans-serif`;
    const spot = this.room(x, y, pen.measureText(text).width, type, out, text);
    if (!spot) return; // no room: the pointer tells
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.strokeStyle = colour.surface;
    pen.strokeText(text, spot.x, spot.y);
    pen.fillStyle = token ? colour["token-text"] : fill;
    pen.fillText(text, spot.x, spot.y);
  }

  // The place for a label beside this one, farther and farther out, where nothing else is written.
  room(x, y, wide, high, [ox, oy], text) {
    for (const side of [1, -1]) {
      for (let ring = 0; ring < 5; ring += 1) {
        const out = side * (10 + ring * (high + 1));
        const at = { x: x + ox * out + Math.sign(ox * side) * Math.abs(ox) * (wide / 2), y: y + oy * (out + side * high * 0.4) };
        const box = boxOf(at.x, at.y, wide, high, text);
        if (box.left < 2 || box.right > this.width - 2 || box.top < this.head || box.bottom > this.height - this.foot) continue;
        const meets = (other) => box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top;
        if (this.labels.some(meets) || this.spots.some((one) => meets(boxOf(one.x, one.y, 12, 10))) || this.places.some((at, node) => meets(boxOf(at.x, at.y, this.around(node), this.around(node))))) continue;
        this.labels.push(box);
        return at;
      }
    }
    return null;
  }

  // How wide a node is, with the ring around who has the token.
  around(node) {
    return this.snapshot.tokens.has(node) ? (this.r + Math.max(5, this.r * 0.42)) * 1.9 : this.r * 1.8;
  }

  // What is under the pointer: a message, a node or a link.
  under(x, y) {
    for (const spot of this.spots ?? []) if (Math.hypot(spot.x - x, spot.y - y) < 11) return { message: spot.message.id };
    let best = { distance: Math.max(this.r + 5, 10), node: -1 };
    this.places.forEach((at, node) => {
      const distance = Math.hypot(at.x - x, at.y - y);
      if (distance < best.distance) best = { distance, node };
    });
    if (best.node >= 0) return { node: best.node };
    return this.linkUnder(x, y, this.ends ?? []) ?? this.linkUnder(x, y, this.cut ?? [], true);
  }

  linkUnder(x, y, ends, gone) {
    for (let i = 0; i < ends.length && ends.length < 4000; i += 2) {
      const a = this.places[ends[i]];
      const b = this.places[ends[i + 1]];
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      const part = ((x - a.x) * dx + (y - a.y) * dy) / (dx * dx + dy * dy || 1);
      if (part > 0.1 && part < 0.9 && Math.hypot(a.x + dx * part - x, a.y + dy * part - y) < 6) return { link: pair(ends[i], ends[i + 1]), gone };
    }
    return null;
  }
}

// Messages on one way must not hide each other: those behind push, then those at the end push back.
function spread(way, apart) {
  way.sort((a, b) => b.part - a.part || a.message.id - b.message.id);
  for (let i = way.length - 2; i >= 0; i -= 1) way[i].part = Math.max(way[i].part, way[i + 1].part + apart);
  let most = 1;
  for (const one of way) {
    one.part = Math.max(0, Math.min(one.part, most));
    most = one.part - apart;
  }
}

const boxOf = (x, y, wide, high, text) => ({ left: x - wide / 2, right: x + wide / 2, top: y - high / 2, bottom: y + high / 2, text });

// How far apart the two nearest of these are.
function nearest(places) {
  let least = Infinity;
  places.forEach((one, i) => places.slice(i + 1).forEach((other) => { least = Math.min(least, Math.hypot(one.x - other.x, one.y - other.y)); }));
  return Number.isFinite(least) ? least : 0;
}

function linksSeen(run) {
  const links = new Set();
  for (const window of run.windows.values()) {
    for (const lines of window.steps) for (const line of lines) if (line.event === "link-up") links.add(pair(line.node, line.peer));
  }
  return [...links];
}

function grown([x1, y1, x2, y2]) {
  const dx = x2 - x1 || 1;
  const dy = y2 - y1 || 1;
  return x2 > x1 || y2 > y1 ? [x1, y2 > y1 ? y1 : y1 - dx * 0.06, x2 > x1 ? x2 : x1 + dy * 0.06, y2 > y1 ? y2 : y1 + dx * 0.06] : [x1 - dx, y1 - dy, x2 + dx, y2 + dy];
}

function compare(one, other) {
  for (let i = 0; i < one.length; i += 1) if (one[i] !== other[i]) return one[i] > other[i] ? 1 : -1;
  return 0;
}

function arrow(pen, from, to, where, size) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy);
  if (length < size * 4) return;
  const ux = dx / length;
  const uy = dy / length;
  const x = from.x + dx * where + ux * size;
  const y = from.y + dy * where + uy * size;
  pen.moveTo(x, y);
  pen.lineTo(x - ux * size * 2 - uy * size, y - uy * size * 2 + ux * size);
  pen.lineTo(x - ux * size * 2 + uy * size, y - uy * size * 2 - ux * size);
  pen.closePath();
}
