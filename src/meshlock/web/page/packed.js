// A value as a word for addresses: JSON, compressed, in letters that mails leave alone.

const LETTERS = { "+": "-", "/": "_", "=": "" };

async function through(stream, bytes) {
  const made = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await made.arrayBuffer());
}

export async function packed(value) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(value)));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replace(/[+/=]/g, (letter) => LETTERS[letter]);
}

export async function unpacked(word) {
  const text = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
  return JSON.parse(new TextDecoder().decode(bytes));
}
