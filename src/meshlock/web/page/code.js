// Python in colours: enough of its grammar to read a handler by.

const PIECE = /("""|''')|(#.*)|([rbf]?"(?:[^"\\]|\\.)*"|[rbf]?'(?:[^'\\]|\\.)*')|\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|self|True|try|while|with|yield)\b|\b(\d[\w.]*)/g;
const KINDS = [, , "remark", "text", "word", "number"];

// For every line its pieces: text, and elements with a class of their own.
export function coloured(lines) {
  let inside = ""; // the quotes of a text that goes on over lines
  return lines.map((line) => {
    const pieces = [];
    let from = 0;
    const put = (until, kind) => {
      if (until <= from) return;
      const made = document.createElement("i");
      made.className = kind;
      made.textContent = line.slice(from, until);
      pieces.push(kind ? made : line.slice(from, until));
      from = until;
    };
    while (from < line.length) {
      if (inside) {
        const end = line.indexOf(inside, from);
        put(end < 0 ? line.length : end + 3, "remark");
        if (end >= 0) inside = "";
        continue;
      }
      PIECE.lastIndex = from;
      const found = PIECE.exec(line);
      put(found ? found.index : line.length, "");
      if (!found) break;
      if (found[1]) {
        inside = found[1];
        const end = line.indexOf(inside, from + 3);
        put(end < 0 ? line.length : end + 3, "remark");
        if (end >= 0) inside = "";
      } else put(found.index + found[0].length, KINDS.find((_, group) => group > 1 && found[group]));
    }
    return pieces;
  });
}
