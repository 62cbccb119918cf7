// A line of the trace in words.

export function value(thing) {
  if (thing === -1) return "nil";
  if (thing === null || thing === undefined) return "–";
  if (Array.isArray(thing)) return `(${thing.map(value).join(", ")})`;
  if (typeof thing === "object") return Object.entries(thing).map(([key, part]) => `${key} ${value(part)}`).join(", ");
  if (typeof thing === "number" && !Number.isInteger(thing)) return String(Math.round(thing * 1000) / 1000);
  if (typeof thing === "number" && Math.abs(thing) > 1e15) return thing < 0 ? "−∞" : "∞";
  return String(thing);
}

export function message(line) {
  const parts = Object.entries(line.args ?? {}).map(([key, part]) => `${key} ${value(part)}`);
  return parts.length ? `${line.message}(${parts.join(", ")})` : String(line.message);
}

// Permits are a number, or one per kind.
export const total = (amount) => (typeof amount === "object" ? Object.values(amount).reduce((sum, one) => sum + one, 0) : amount);

export const kinds = (amount) => (typeof amount === "object" ? Object.entries(amount).map(([kind, count]) => `${count} ${kind}`).join(" and ") : String(amount));

const permits = (count) => (typeof count === "object" ? kinds(count) : count === 1 ? "1 permit" : `${count} permits`);

const urgency = (line) => `priority ${value(line.priority ?? 0)}${line.deadline === undefined ? "" : `, deadline ${value(line.deadline)} s`}`;

// brief: without what a message carries
export function words(line, called = String, brief = false) {
  const said = brief ? line.message : line.message && message(line);
  switch (line.event) {
    case "start": return `${called(line.node)} starts`;
    case "request": return `${called(line.node)} asks for ${permits(line.want ?? 1)}, ${urgency(line)}`;
    case "priority": return `${called(line.node)} changes the request of client ${line.client}: ${urgency(line)}`;
    case "enter": return `${called(line.node)} enters with ${permits(line.want ?? 1)}`;
    case "leave": return `${called(line.node)} leaves`;
    case "give-back": return `${called(line.node)} releases ${permits(line.permits)} and keeps the others`;
    case "withdraw": return `${called(line.node)} withdraws its request`;
    case "deliver": return `${called(line.node)} receives ${said} from ${called(line.from)}`;
    case "undelivered": return `${called(line.node)} gets ${said} back: the link to ${called(line.to)} failed`;
    case "send": return `sends ${said} to ${called(line.to)}`;
    case "drop": return `message ${line.id} to ${called(line.node)} is lost`;
    case "link-up": return `${called(line.node)} sees its link to ${called(line.peer)} form`;
    case "link-down": return `${called(line.node)} sees its link to ${called(line.peer)} fail`;
    case "crash": return `${called(line.node)} crashes`;
    case "restart": return `${called(line.node)} restarts`;
    case "lease": return `the lease of client ${line.client} now ends at ${value(line.until)}`;
    case "lease-lost": return `the lease of client ${line.client} at ${called(line.node)} is over`;
    case "recover": return `${called(line.node)} makes the token of epoch ${value(line.epoch)}`;
    case "timer": return `a timer of ${called(line.node)} fires${line.does ? `: ${line.does}` : ""}`;
    case "end": return line.unserved ? `the end: ${line.unserved} wait for ever` : "the end: nothing more can happen";
    default: return `${called(line.node)}: ${line.event}`;
  }
}
