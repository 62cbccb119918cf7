// The mesh: who is linked to whom, where the token is and through whom it is reached, who is out of reach.

import { layout } from "./layout.js";

const EDGE = 54;
const seen = new Set(); // links that were there once: the picture keeps its shape when one is cut
let shape = { key: "", at: [], high: 0, room: 0 };

export function drawn(name, properties, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) key === "text" ? (made.textContent = value) : made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const pair = (one, other) => (one < other ? `${one} ${other}` : `${other} ${one}`);

function places(names, wide) {
  const number = new Map(names.map((name, i) => [name, i]));
  for (const link of seen) if (link.split(" ").some((name) => !number.has(name))) seen.delete(link);
  const links = [...seen].map((link) => link.split(" ").map((name) => number.get(name)).sort((a, b) => a - b).join("-")).sort();
  const key = `${wide}|${names.join(" ")}|${links.join(" ")}`;
  if (key !== shape.key) shape = { key, ...spread(layout(names.length, links), wide) };
  return new Map(names.map((name, i) => [name, shape.at[i]]));
}

// Into the picture, without making a short line as wide as a long one; and how much room each node has.
function spread(at, wide) {
  const most = wide * 0.66;
  const low = (of) => Math.min(...at.map((p) => p[of]));
  const size = (of) => Math.max(...at.map((p) => p[of])) - low(of);
  const fits = (of, room) => (size(of) ? (room - 2 * EDGE) / size(of) : Infinity);
  const across = Math.min(fits("x", wide), 170);
  const down = Math.min(fits("y", most), 170);
  const [sx, sy] = [Math.min(across, 1.7 * down), Math.min(down, 1.7 * across)];
  const high = Math.max(wide * 0.42, size("y") * sy + 2 * EDGE);
  const dx = wide / 2 - (low("x") + size("x") / 2) * sx;
  const dy = high / 2 - 6 - (low("y") + size("y") / 2) * sy;
  const places = at.map((p) => ({ x: p.x * sx + dx, y: p.y * sy + dy }));
  let room = 80;
  if (places.length > 300) room = 0;
  else for (const [i, one] of places.entries()) for (const other of places.slice(i + 1)) room = Math.min(room, Math.hypot(one.x - other.x, one.y - other.y));
  return { high, room, at: places };
}

export function pictureOf(svg, view, old) {
  const names = Object.keys(view.nodes);
  const there = new Map(); // pair: can it be used?
  for (const name of names) for (const other of view.nodes[name].links) if (view.nodes[other]) there.set(pair(name, other), view.nodes[name].distance !== null);
  for (const link of there.keys()) seen.add(link);
  const wide = svg.clientWidth < 480 ? 400 : 640;
  const at = places(names, wide);
  const radius = Math.max(4, Math.min(20, shape.room * 0.27));
  const named = shape.room > 44;
  const counted = radius > 9;
  const parts = [];
  for (const link of new Set([...seen, ...there.keys()])) {
    const [one, other] = link.split(" ").map((name) => at.get(name));
    const state = there.get(link) ? "" : there.has(link) ? "far" : "down";
    parts.push(drawn("line", { x1: one.x, y1: one.y, x2: other.x, y2: other.y, class: state }));
  }
  for (const name of names) {
    const { pool_view, distance } = view.nodes[name];
    if (!pool_view?.towards || distance === null || !there.get(pair(name, pool_view.towards))) continue;
    const other = view.nodes[pool_view.towards];
    if (other.pool_view?.token_here === false && other.pool_view.towards === name && younger(other, view.nodes[name], pool_view.towards < name)) continue; // one of the views is stale
    const [from, to] = [at.get(name), at.get(pool_view.towards)];
    const turn = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
    parts.push(drawn("path", { d: counted ? "M9 0 -6 -7 -6 7z" : "M4 0 -3 -3 -3 3z", class: "tip", transform: `translate(${from.x * 0.45 + to.x * 0.55} ${from.y * 0.45 + to.y * 0.55}) rotate(${turn})` }));
  }
  const weight = (name) => (view.nodes[name].pool_view?.token_here ? 2 : view.nodes[name].holds ? 1 : 0);
  for (const name of [...names].sort((one, other) => weight(one) - weight(other))) {
    const node = view.nodes[name];
    const { x, y } = at.get(name);
    const known = node.pool_view?.known;
    const state = [known && node.pool_view.token_here ? "token" : "", node.holds ? "inside" : "", known && node.pool_view.waits ? "waiting" : "", node.distance === null ? "gone" : node.age === null || node.age > old ? "old" : "", name === view.node ? "me" : ""].filter(Boolean).join(" ");
    const group = drawn("g", { class: `node ${state}`, transform: `translate(${x} ${y})` }, drawn("title", { text: said(name, node) }));
    if (known && node.pool_view.token_here) group.append(drawn("circle", { class: "halo", r: radius + (counted ? 6 : 4) }));
    group.append(drawn("circle", { class: "body", r: radius }));
    if (counted && node.holds) group.append(drawn("text", { class: "count", y: 5, text: node.holds }));
    if (named || name === view.node) group.append(drawn("text", { class: "name", y: radius + 22, text: name.slice(0, 18) }));
    if (shape.room > 60) {
      const note = noted(node, old);
      if (note) group.append(drawn("text", { class: "note", y: radius + 37, text: note }));
    }
    parts.push(group);
  }
  svg.setAttribute("viewBox", `0 0 ${wide} ${shape.high.toFixed(0)}`);
  svg.replaceChildren(...parts);
  const far = names.filter((name) => view.nodes[name].distance === null);
  const holder = names.find((name) => view.nodes[name].pool_view?.token_here);
  svg.setAttribute("aria-label", `${names.length} nodes, ${[...there.values()].filter(Boolean).length} links${holder ? `, the token at ${holder}` : ""}${far.length ? `, unreachable: ${far.join(", ")}` : ""}. The table of nodes says the same.`);
}

// Was this told later than that?
function younger(one, other, first) {
  const [age, elder] = [one.age ?? Infinity, other.age ?? Infinity];
  return age < elder || (age === elder && first);
}

function noted(node, old) {
  if (node.left) return "left";
  if (node.distance === null) return node.unreachable_for === null ? "unreachable" : `unreachable, ${node.unreachable_for.toFixed(0)} s`;
  if (node.age === null) return "unknown";
  if (node.age > old) return `last seen ${node.age.toFixed(0)} s ago`;
  return node.pool_view?.waits ? `${node.pool_view.waits} waiting` : "";
}

function said(name, node) {
  const pool_view = node.pool_view;
  if (!pool_view?.known) return `${name}: ${pool_view ? pool_view.why : "unknown"}`;
  return `${name}: ${node.holds === null ? "" : `holds ${node.holds}, `}${pool_view.waits} waiting, ${pool_view.free_here} free${pool_view.token_here ? ", has the token" : ""}; last seen ${node.age.toFixed(1)} s ago`;
}
