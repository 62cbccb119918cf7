// A running mesh as one node knows it, refreshed. Views of other nodes are as old as they say.

import { pictureOf } from "./map.js";
import { redraw } from "./redraw.js";
import { element } from "./side.js";
import { Figures, chart } from "./figures.js";
import { theme } from "./theme.js";

const $ = (id) => document.getElementById(id);
const EVERY = 500; // milliseconds
const CELLS = 64;
const PATIENCE = 4000; // milliseconds that an answer may take
const SILENT = 3000; // without an answer, after which what is shown counts as old
const figures = new Map(); // by pool
let kept = JSON.parse(sessionStorage.getItem("meshlock-requests") ?? "[]"); // what this tab asked for
let token = sessionStorage.getItem("meshlock-token") ?? "";
let chosen = "";

theme($("theme"));

// Only what has changed is drawn anew.
function fill(id, key, make) {
  const place = $(id);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  redraw(place, ...make());
}

let answered = performance.now(); // when the agent last did
let name = "meshlock, live";

// Title and icon tell those who look at another tab.
function flag(wrong) {
  document.title = wrong ? `(!) ${name}` : name;
  const icon = wrong ? "/page/alarm.svg" : "/page/icon.svg";
  if (!$("icon").href.endsWith(icon)) $("icon").href = icon;
}

// An agent that is stopped says nothing: its page tells how old it is, and looks like it.
function age() {
  const silent = performance.now() - answered;
  document.documentElement.classList.toggle("silent", silent > SILENT);
  if (silent > SILENT) alarms([`The agent has not answered for ${Math.floor(silent / 1000)} s. What is shown here was so then.`]);
}
setInterval(age, 500);

function alarms(list) {
  flag(list.length > 0);
  $("verdict").hidden = !list.length;
  fill("verdict", JSON.stringify(list), () => list.map((text) => element("span", { text })));
  const timeless = list.join(" ").replace(/[\d.]+ s/g, "");
  if ($("said").dataset.key !== timeless) {
    $("said").dataset.key = timeless; // seconds that pass are no news to those who listen
    $("said").textContent = list.join(" ");
  }
}

const headers = () => (token ? { Authorization: `Bearer ${token}` } : {});

async function look() {
  let answer;
  const asked = new URLSearchParams({ pool: chosen, keep: kept.join(" ") });
  try {
    answer = await fetch(`/view.json?${asked}`, { headers: headers(), signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    if (performance.now() - answered < SILENT) alarms(["The agent does not answer."]);
    return;
  }
  answered = performance.now();
  $("enter").hidden = answer.status !== 401;
  if (answer.status === 401) {
    $("title").textContent = "Sign in";
    $("subtitle").textContent = token ? "The bearer token is wrong." : "This agent requires its bearer token.";
    $("shown").hidden = true;
    return;
  }
  show(await answer.json());
}

async function act(what, details) {
  const answer = await fetch(`/actions/${what}`, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(details) });
  const said = await answer.json();
  $("refused").textContent = answer.ok ? "" : said.why;
  await look();
  return answer.ok ? said : null;
}

function show(view) {
  chosen = view.pool;
  fill("pool", JSON.stringify(view.pools), () => view.pools.map((name) => element("option", { value: name, text: name })));
  $("pool").value = chosen;
  const nodes = Object.entries(view.nodes);
  const gone = nodes.filter(([, node]) => node.distance === null && !node.left && !node.gone).length;
  const me = view.nodes[view.node]?.pool_view;
  $("title").textContent = `${view.node}${chosen ? ` · ${chosen}` : ""}`;
  $("subtitle").textContent = [me?.algorithm, me?.members ? `${me.members} members` : "", me?.epoch ? `epoch ${me.epoch}` : "", view.address, `${nodes.length} nodes known${gone ? `, ${gone} unreachable` : ""}`, view.protected ? "links are protected" : "links are not protected"].filter(Boolean).join(" · ");
  name = `${view.node} · meshlock`;
  $("mode").hidden = false;
  $("mode").textContent = view.allowed ? "actions allowed" : "read-only";
  const underWay = new Set(view.requests.filter((request) => ["waiting", "held"].includes(request.state)).map((request) => request.request));
  kept = kept.filter((name) => underWay.has(name));
  alarms(view.alarms);
  $("shown").hidden = !me?.known;
  if (me?.known) showPool(view, nodes);
}

const seconds = (age) => (age === null ? "–" : age === 0 ? "now" : `${age < 10 ? age.toFixed(1) : age.toFixed(0)} s`);
const ago = (age) => `${seconds(age)} ago`;
const lasting = (time) => (time < 100 ? `${time.toFixed(1)} s` : time < 6000 ? `${Math.floor(time / 60)} min` : `${Math.floor(time / 3600)} h ${Math.floor(time / 60) % 60} min`);
const SEEN = "last seen, ago";

function showPool(view, nodes) {
  const { old, who } = view;
  const told = nodes.filter(([, node]) => node.pool_view?.known);
  permits(view, told);
  $("map-title").textContent = `The mesh, as ${view.node} knows it`;
  pictureOf($("map"), view, old);
  const leased = told.some(([, { pool_view }]) => pool_view.members);
  const named = who.holding.some((one) => one.slots.length);
  const grants = who.holding.map((one) => {
    const node = view.nodes[one.node];
    const own = node?.pool_view?.holding.find((grant) => grant.fence !== null && grant.fence === one.fence);
    const left = one.lapsing ? "lapses" : own?.lease ? `${own.lease.toFixed(1)} s left` : null;
    const age = view.nodes[leased ? who.token : one.node]?.age ?? null;
    return { node: one.node, label: one.label, permits: one.want, ...(named ? { slots: one.slots.join(" ") } : {}), priority: own?.priority, fence: one.fence, "for": lasting(one.seconds), ...(leased ? { lease: left } : {}), [SEEN]: seconds(age) };
  });
  const urgent = who.waiting.some((one) => one.deadline !== null);
  const waiting = who.waiting.map((one) => ({ node: one.node, label: one.label, permits: one.want, priority: one.priority, ...(urgent ? { deadline: one.deadline === null ? null : one.deadline < 0 ? `${lasting(-one.deadline)} ago` : `in ${lasting(one.deadline)}` } : {}), "for": lasting(one.seconds), [SEEN]: seconds(view.nodes[one.node]?.age ?? null) }));
  table("grants", grants, who.held === null ? `Holders unknown: ${who.why}.` : "No known holders.");
  table("waiting", waiting, "No known waiting clients.");
  const reasons = told.filter(([, node]) => node.pool_view.waits && node.pool_view.why).map(([name, node]) => `${name} waits: ${node.pool_view.why}.`);
  if (who.queued > who.waiting.length) reasons.unshift(`${who.queued - who.waiting.length} more wait.`);
  fill("reasons", JSON.stringify(reasons), () => reasons.slice(0, 20).map((text) => element("p", { text })));
  table("nodes", nodes.map(([name, node]) => ({
    node: name, "links away": node.distance ?? "unreachable", "linked to": node.links.join(" ") || "–", token: node.pool_view?.token_here ? "here" : node.pool_view?.towards ? `through ${node.pool_view.towards}` : "–",
    holds: node.holds ?? "–", wait: node.pool_view?.known ? node.pool_view.waits : "–", [SEEN]: seconds(node.age),
  })), "");
  links(view);
  $("asking").hidden = !view.allowed;
  if (view.allowed) requests(view);
  charts(nodes, view.every);
}

function permits(view, told) {
  const { who, old } = view;
  const { permits: k, surplus } = who;
  const [held, free] = [who.held ?? 0, who.free ?? 0];
  const rest = k - held - free;
  const cells = [];
  const cell = (kind, text, title = "") => cells.push(element("span", { class: `cell ${kind}`, text, title }));
  const parts = new Map();
  for (const one of who.holding) {
    parts.set(one.node, (parts.get(one.node) ?? 0) + one.want);
    const fence = one.fence === null ? "" : ` #${one.fence.length > 8 ? `…${one.fence.slice(-4)}` : one.fence}`;
    for (let i = 0; i < one.want && cells.length < held; i += 1) cell("used", `${one.node}${one.slots[i] ? ` ${one.slots[i]}` : fence}`, one.label);
  }
  if (k <= CELLS) {
    while (cells.length < held) cell("used", "held");
    for (let i = 0; i < free; i += 1) cell("free", "free");
    for (let i = 0; i < rest; i += 1) cell("away", "");
  }
  const where = [...parts].map(([name, many]) => `${name} ${many}`);
  const ages = told.map(([, node]) => node.age).filter((age) => age <= old);
  const says = [
    who.held === null ? `Holders of its ${k} permits unknown: ${who.why}.` : `${held} of ${k} held${where.length && !surplus ? ` (${where.slice(0, 12).join(", ")}${where.length > 12 ? " …" : ""})` : ""}, ${free} free${rest ? `, ${rest} unknown` : ""}.`,
    surplus ? `The pool was made smaller: ${surplus} to be released before any is free.` : "",
    who.token ? `The token is at ${who.token}.` : "The holder of the token is unknown: the token is in flight, or its node is unreachable.",
    ages.length > 1 ? `The oldest view was seen ${ago(Math.max(...ages))}.` : "",
  ].filter(Boolean).join(" ");
  const shown = k <= CELLS ? cells : [element("meter", { min: 0, max: k, value: held })];
  fill("permits", shown.map((one) => `${one.className}|${one.textContent}|${one.title}|${one.value ?? ""}`).join(), () => shown);
  $("permits").setAttribute("aria-label", who.held === null ? `${k} permits` : `${held} of ${k} permits held, ${free} free`);
  $("where").textContent = says;
}

function rowsOf(columns, rows) {
  return element("table", {}, element("thead", {}, element("tr", {}, ...columns.map((text) => element("th", { scope: "col", text })))),
    element("tbody", {}, ...rows.slice(0, 200).map((row) => element("tr", { "data-key": row[columns[0]] }, ...columns.map((key) => (row[key] instanceof Node ? element("td", {}, row[key]) : element("td", { class: key, "data-name": key, text: String(row[key] ?? "–") })))))));
}

function table(id, rows, none) {
  fill(id, JSON.stringify([rows, none]), () => (rows.length ? [element("div", { class: "scroll" }, rowsOf(Object.keys(rows[0]), rows))] : [element("p", { class: "muted", text: none })]));
}

function links(view) {
  const all = Object.entries(view.links);
  const state = (link) => (link.cut_for !== null ? "cut" : link.up ? "up" : "down");
  const key = JSON.stringify([view.allowed, all.map(([peer, link]) => [peer, state(link), link.unacknowledged])]);
  fill("links", key, () => {
    if (!all.length) return [element("p", { class: "muted", text: "No links." })];
    const columns = ["peer", "state", "unacknowledged", ...(view.allowed ? [" "] : [])];
    return [rowsOf(columns, all.map(([peer, link]) => {
      const cut = link.cut_for !== null;
      const press = cut ? () => act("restore", { peer }) : () => act("cut", { peer, seconds: 30 });
      const text = cut ? "Restore" : "Cut for 30 s";
      return { peer, state: state(link), "unacknowledged": link.unacknowledged, " ": element("button", { type: "button", text, "aria-label": `${text}: the link to ${peer}`, "data-key": `link ${peer}`, onclick: press }) };
    }))];
  });
}

function requests(view) {
  const own = view.requests.filter((request) => request.pool === chosen).reverse();
  fill("requests", JSON.stringify(own), () => own.slice(0, 8).map((request) => {
    const over = !["waiting", "held"].includes(request.state);
    const fence = request.fence === null || over ? "" : `, fence ${request.fence}`;
    return element("p", { class: "request", "data-key": request.request },
      element("span", { class: `chip ${request.state === "held" ? "inside" : over && request.state !== "released" ? "bad" : ""}`, text: request.state }),
      element("span", { text: `${request.want} with priority ${request.priority}${fence}${request.why ? `: ${request.why}` : ""}` }),
      over ? null : element("button", { type: "button", text: request.state === "held" ? "Release" : "Withdraw", "data-key": request.request, onclick: () => act("release", { request: request.request }) }));
  }));
}

function charts(nodes, every) {
  const seen = figures.get(chosen) ?? new Figures();
  figures.set(chosen, seen);
  seen.add(nodes, every);
  $("rate").textContent = seen.now("entries").toFixed(1);
  const wait = seen.now("wait");
  $("wait").textContent = wait <= 0 ? "–" : wait < 0.0001 ? `${(1e6 * wait).toFixed(0)} µs` : `${(1000 * wait).toFixed(1)} ms`;
  const moved = seen.now("moved");
  $("moved").textContent = moved.toFixed(1);
  $("each").textContent = moved > 0 ? `one every ${moved > 1 ? `${(1000 / moved).toFixed(0)} ms` : `${(1 / moved).toFixed(1)} s`}` : "";
  $("sent").textContent = seen.now("sent").toFixed(1);
  chart($("rate-chart"), seen.line("entries"));
  chart($("wait-chart"), seen.line("wait"));
  chart($("moved-chart"), seen.line("moved"));
  chart($("sent-chart"), seen.line("sent"));
}

$("pool").addEventListener("change", () => { chosen = $("pool").value; look(); });
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("meshlock-token", token);
  look();
});
$("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = await act("acquire", { pool: chosen, want: Number($("want").value), priority: Number($("priority").value) });
  if (!said) return;
  kept.push(said.request);
  while (kept.length > 100) kept.shift();
  sessionStorage.setItem("meshlock-requests", JSON.stringify(kept));
});

async function again() {
  if (!document.hidden || kept.length) await look();
  setTimeout(again, EVERY);
}
again();
