// One node of a running mesh, asked again and again; nothing here can change anything.

import { element } from "./side.js";

const $ = (id) => document.getElementById(id);
const EVERY = 500; // milliseconds
const KEPT = 120;
const past = new Map(); // by pool: what was seen, the oldest first
let token = sessionStorage.getItem("meshlock-token") ?? "";
let chosen = "";

if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");

function drawn(name, properties, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) key === "text" ? (made.textContent = value) : made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function alarms(list) {
  $("verdict").hidden = !list.length;
  $("verdict").replaceChildren(...list.map((text) => element("span", { text })));
}

async function look() {
  let answer;
  try {
    answer = await fetch("/view.json", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  } catch {
    alarms(["The agent does not answer."]);
    return;
  }
  $("enter").hidden = answer.status !== 401;
  if (answer.status === 401) {
    $("title").textContent = "Who are you?";
    $("subtitle").textContent = token ? "This token is not the one." : "This agent wants its bearer token.";
    $("shown").hidden = true;
    return;
  }
  show(await answer.json());
}

function show(status) {
  const names = Object.keys(status.pools);
  if (!names.includes(chosen)) chosen = names[0] ?? "";
  if ($("pool").children.length !== names.length) $("pool").replaceChildren(...names.map((name) => element("option", { value: name, text: name })));
  $("pool").value = chosen;
  const pool = status.pools[chosen];
  const links = Object.entries(status.links);
  const up = links.filter(([, link]) => link.up);
  $("title").textContent = `${status.node}${chosen ? ` · ${chosen}` : ""}`;
  $("subtitle").textContent = [pool?.algorithm, status.address, `${up.length} of ${links.length} links up`, status.protected ? "links are protected" : "links are not protected"].filter(Boolean).join(" · ");
  document.title = `${status.node} · meshlock`;
  const bad = [];
  if (pool?.conflict) bad.push(pool.conflict);
  if (pool && !pool.known) bad.push(`${chosen}: ${pool.why}.`);
  for (const [peer, link] of links) if (!link.up) bad.push(`The link to ${peer} is down${link.in_custody ? `; ${link.in_custody} messages with permits wait for it` : ""}.`);
  const slow = pool?.waiting?.filter((client) => client.seconds > 30).length ?? 0;
  if (slow) bad.push(`${slow} waiting for more than 30 s.`);
  alarms(bad);
  $("shown").hidden = !pool?.known;
  if (pool?.known) showPool(status, pool, links);
}

function showPool(status, pool, links) {
  const used = pool.holding.reduce((sum, grant) => sum + grant.want, 0);
  const cells = [];
  for (const grant of pool.holding) for (let i = 0; i < grant.want; i += 1) cells.push(element("span", { class: "cell used", text: grant.fence === null ? "" : `#${grant.fence}` }));
  for (let i = 0; i < pool.free_here; i += 1) cells.push(element("span", { class: "cell free", text: "free" }));
  const elsewhere = Math.max(0, pool.permits - cells.length);
  for (let i = 0; i < Math.min(elsewhere, 64); i += 1) cells.push(element("span", { class: "cell away", text: "" }));
  $("permits").replaceChildren(...cells);
  const says = `${used} of ${pool.permits} held here, ${pool.free_here} free here, ${elsewhere} elsewhere`;
  $("permits").setAttribute("aria-label", says);
  $("where").textContent = `${says}. ${pool.token_here ? "The token is here." : pool.towards ? `The token is reached through ${pool.towards}.` : "The token is elsewhere."}`;
  $("grants").replaceChildren(table(pool.holding, ["want", "priority", "fence"], "No permits are held here."));
  $("waiting").replaceChildren(table([...pool.waiting].sort((a, b) => b.priority - a.priority), ["want", "priority", "seconds"], "Nobody waits here."));
  $("links").replaceChildren(table(links.map(([peer, link]) => ({ peer, state: link.up ? "up" : "down", "in custody": link.in_custody })), ["peer", "state", "in custody"], "No links."));
  star(status.node, pool, links);
  charts(pool);
}

function table(rows, columns, none) {
  if (!rows.length) return element("p", { class: "muted", text: none });
  const more = Object.keys(rows[0]).filter((key) => !columns.includes(key));
  const all = [...columns, ...more];
  return element("table", {}, element("thead", {}, element("tr", {}, ...all.map((text) => element("th", { scope: "col", text })))),
    element("tbody", {}, ...rows.slice(0, 100).map((row) => element("tr", {}, ...all.map((key) => element("td", { text: String(row[key] ?? "–") }))))));
}

function star(me, pool, links) {
  const parts = [];
  const spots = links.map(([peer, link], i) => {
    const angle = (2 * Math.PI * i) / links.length - (links.length > 2 ? Math.PI / 2 : 0);
    return { peer, link, x: Math.cos(angle) * 115, y: Math.sin(angle) * 82 };
  });
  for (const { peer, link, x, y } of spots) {
    const to = pool.towards === peer;
    parts.push(drawn("line", { x1: 0, y1: 0, x2: x, y2: y, class: !link.up ? "down" : to ? "to" : "" }));
    if (to) {
      const angle = (Math.atan2(y, x) * 180) / Math.PI;
      parts.push(drawn("path", { d: "M8 0 -5 -7 -5 7z", class: "tip", transform: `translate(${x * 0.6} ${y * 0.6}) rotate(${angle})` }));
    }
  }
  for (const { peer, link, x, y } of spots) parts.push(drawn("circle", { cx: x, cy: y, r: 15, class: link.up ? "" : "down" }), drawn("text", { x, y: y + 30, text: peer.slice(0, 18) }));
  parts.push(drawn("circle", { cx: 0, cy: 0, r: 22, class: pool.token_here ? "me token" : "me" }), drawn("text", { x: 0, y: 4, text: me.slice(0, 5) }));
  $("star").replaceChildren(...parts);
}

function charts(pool) {
  const sent = Object.values(pool.sent).reduce((sum, count) => sum + count, 0);
  const now = { at: performance.now() / 1000, entries: pool.entries, waited: pool.waited, sent };
  const seen = past.get(chosen) ?? [];
  past.set(chosen, seen);
  seen.push(now);
  while (seen.length > KEPT) seen.shift();
  const rates = [];
  const waits = [];
  const sents = [];
  for (let i = 1; i < seen.length; i += 1) {
    const seconds = seen[i].at - seen[i - 1].at || 1;
    const entries = seen[i].entries - seen[i - 1].entries;
    rates.push(entries / seconds);
    waits.push(entries ? (1000 * (seen[i].waited - seen[i - 1].waited)) / entries : 0);
    sents.push((seen[i].sent - seen[i - 1].sent) / seconds);
  }
  const mean = (numbers) => (numbers.length ? numbers.slice(-6).reduce((sum, number) => sum + number, 0) / Math.min(6, numbers.length) : 0);
  $("rate").textContent = mean(rates).toFixed(1);
  const some = waits.filter((wait) => wait > 0);
  $("wait").textContent = some.length ? `${mean(some).toFixed(1)} ms` : "–";
  $("sent").textContent = mean(sents).toFixed(1);
  chart($("rate-chart"), rates);
  chart($("wait-chart"), waits);
  chart($("sent-chart"), sents);
}

function chart(svg, numbers) {
  const top = Math.max(...numbers, 1e-9) * 1.15;
  const step = 240 / (Math.max(numbers.length, 24) - 1);
  const from = 240 - step * (numbers.length - 1);
  const points = numbers.map((number, i) => `${(from + i * step).toFixed(1)} ${(46 - (number / top) * 44).toFixed(1)}`);
  if (points.length < 2) return;
  svg.replaceChildren(drawn("path", { class: "area", d: `M${from} 47 L${points.join(" L")} L240 47z` }), drawn("path", { d: `M${points.join(" L")}` }));
}

$("pool").addEventListener("change", () => { chosen = $("pool").value; look(); });
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("meshlock-token", token);
  look();
});

async function again() {
  if (!document.hidden) await look();
  setTimeout(again, EVERY);
}
again();
